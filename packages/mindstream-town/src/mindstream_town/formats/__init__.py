"""Read and write files of towns: matrix folders, Tiled maps, saved simulations, town files."""
