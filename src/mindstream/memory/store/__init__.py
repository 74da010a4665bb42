"""The store of records: its protocol, the SQLite and PostgreSQL stores, and columns and vectors as arrays."""
