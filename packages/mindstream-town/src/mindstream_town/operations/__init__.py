"""Operations on towns for REST and MCP."""
