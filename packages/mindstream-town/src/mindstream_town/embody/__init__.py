"""Let a user control a resident, or enter as a visitor, while the town runs."""
