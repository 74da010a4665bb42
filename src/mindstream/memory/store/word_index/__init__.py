"""Index of words and vectors in a store, for streams whose columns are not loaded; the ranking is the same for every
database."""
