"""Operations on towns: what REST and MCP offer of them."""
