"""One typed facade over all of it: the command line, REST, MCP and pages are skins without logic."""
