"""The service layer: the operations that the command line, REST, MCP and the studio only call."""
