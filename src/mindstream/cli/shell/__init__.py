"""Parts that all commands share: flags, files and lines, questions, keys, signals."""
