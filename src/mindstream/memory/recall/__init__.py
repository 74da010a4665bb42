"""Recall: find the records that answer a question."""
