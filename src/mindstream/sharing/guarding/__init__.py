"""Detect poisoned exemplars: which pairs of a pool are not served because of doubt, and why."""
