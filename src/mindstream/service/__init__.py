"""The service layer: operations that the command line, REST, MCP and the studio offer; these contain no logic."""
