"""Tools that reach the open network."""
