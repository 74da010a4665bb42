"""What residents do without a model."""
