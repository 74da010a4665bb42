"""Evaluation of answers from memory alone: data formats, conditions, results (`memory evaluate`)."""
