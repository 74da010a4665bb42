"""Adapters for other frameworks, one module each (docs/adapters.md); none is imported by mindstream itself."""
