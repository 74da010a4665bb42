"""What a store keeps, and the SQLite file that keeps it; columns and vectors as arrays."""
