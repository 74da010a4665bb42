"""Readers of plan formats: `read.read` reads a whole text, `rewoo.StepReader` one that is still being written."""
