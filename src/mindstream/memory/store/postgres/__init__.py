"""The store in a PostgreSQL database: the same tables and rows, for whoever has a server (`mindstream[postgres]`)."""
