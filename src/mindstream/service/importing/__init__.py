"""Import memories from, and export them to, the formats of other programs (docs/importing.md)."""
