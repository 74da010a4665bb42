"""Looking at a town: why, when, who, and what it would cost. Nothing is written."""
