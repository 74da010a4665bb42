"""The operations of the service. Each is declared once and offered by REST, MCP, the command line and the studio."""
