"""The studio: pages over the server's API, to watch minds think and to live with them (docs/studio-inside.md)."""
