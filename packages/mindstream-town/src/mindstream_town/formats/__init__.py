"""Files of towns: matrices, Tiled maps, saved simulations, town files."""
