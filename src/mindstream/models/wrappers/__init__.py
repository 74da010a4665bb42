"""Wrappers of models: each adds one feature to the model that it wraps."""
