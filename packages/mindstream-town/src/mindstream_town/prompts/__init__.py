"""Prompts of residents, each with the rule that answers if no model is set."""
