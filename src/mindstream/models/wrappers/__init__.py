"""Wrappers of models: each adds one function to the model inside."""
