"""Evaluations with a user's settings."""
