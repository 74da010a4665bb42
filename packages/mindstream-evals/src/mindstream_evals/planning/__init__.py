"""Strategies compared on sets of questions: accuracy and cost (Xu 2023)."""
