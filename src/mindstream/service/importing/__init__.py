"""Memories of other programs, taken in and given back (docs/importing.md)."""
