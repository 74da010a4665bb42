"""Commands of the server: serve, token, mcp."""
