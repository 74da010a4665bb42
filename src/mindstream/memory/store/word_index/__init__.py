"""Index of words and vectors in a store, for streams whose columns are not loaded in memory. SQLite and PostgreSQL use
the same ranking."""
