"""Rubrics and grading prompts."""
