"""One append-only log per data folder: every event, numbered; and the work that events cause."""
