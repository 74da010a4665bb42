"""Evaluations with a person's settings."""
