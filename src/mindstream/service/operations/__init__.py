"""The one typed facade: what a program can ask of mindstream, declared once, for all doors."""
