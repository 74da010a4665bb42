"""What all commands share with the shell that calls them: flags, files and lines, questions, keys, signals."""
