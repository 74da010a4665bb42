"""The world of a town: tiles, or places with roads; paths, positions, conditions and rules."""
