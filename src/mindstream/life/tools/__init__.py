"""The tools of the three roles."""
