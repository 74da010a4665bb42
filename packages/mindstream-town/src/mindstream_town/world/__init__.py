"""The world of a town: tiles or places with roads, ways, positions, conditions and rules."""
