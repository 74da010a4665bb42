"""Files a town is read from and written to: matrices, Tiled maps, saved simulations, a town in one file."""
