"""The MCP server, whose tools models call. The tools are built from the table of operations (docs/mcp-server.md)."""
