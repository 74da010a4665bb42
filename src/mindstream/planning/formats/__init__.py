"""Readers for the forms in which planners write plans, one module each.

`read.read` takes a whole text, `reader.StepReader` one that is still being written.
"""
