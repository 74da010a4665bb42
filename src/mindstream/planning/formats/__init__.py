"""Readers of plan formats: `read.read` takes a whole text, `reader.StepReader` one that is still being written."""
