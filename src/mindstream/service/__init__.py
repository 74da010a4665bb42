"""The service layer: all operations of the interfaces.

The command line, REST, MCP and the studio contain no logic of their own; they call these operations.
"""
