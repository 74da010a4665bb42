"""Detect poisoned exemplars: which pairs of a pool are doubted, and why."""
