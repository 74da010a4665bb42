"""Reasoners wake on a trigger, read the stream, think as long as they need, and write back."""
