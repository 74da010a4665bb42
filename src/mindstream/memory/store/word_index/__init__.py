"""Index of words and vectors in a store, for streams whose columns are not held: one ranking for every database."""
