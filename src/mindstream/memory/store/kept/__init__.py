"""Columns of a stream that are kept beside the store, so that a process need not read every record to begin."""
