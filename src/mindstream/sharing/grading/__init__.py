"""By what pairs are graded."""
