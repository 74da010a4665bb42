"""A user controls a resident or a visitor of a running town."""
