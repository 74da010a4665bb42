"""The MCP server: what models call. Its tools are made from the table of operations; see docs/mcp-server.md."""
