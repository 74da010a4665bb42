"""mindstream in others' programs, a module a framework (docs/adapters.md); nothing is imported unless asked for."""
