"""Displays of a conversation, a life, and a run of a plan."""
