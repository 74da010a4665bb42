"""Prompts of residents, each with the rule that answers without a model."""
