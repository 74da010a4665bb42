"""The store in a PostgreSQL database: the same tables and rows, for use with a server (`mindstream[postgres]`)."""
