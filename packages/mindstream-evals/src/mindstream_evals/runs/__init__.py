"""Run evaluations with a user's settings."""
