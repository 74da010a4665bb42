"""Models around models: each adds one thing to whatever it wraps."""
