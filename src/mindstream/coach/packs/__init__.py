"""Packs: domains as data in folders; their schema, loading, checks and safety."""
