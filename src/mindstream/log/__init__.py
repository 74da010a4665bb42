"""The append-only log of a data folder, which contains every event with a number; and the work that events cause."""
