"""Groups of commands and their flags; what they do is in the modules that they import when they run."""
