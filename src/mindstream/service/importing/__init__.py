"""Import from and export to the formats of other programs (docs/importing.md)."""
