"""Readers of plan formats: `read.read` reads a whole text, `rewoo.StepReader` a text that is still being written."""
