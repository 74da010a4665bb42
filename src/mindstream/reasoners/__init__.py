"""Reasoners: background components that wake on a trigger, read a mind's log and memory, and write their results."""
