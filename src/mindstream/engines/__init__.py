"""Engines: they run tasks in other processes."""
