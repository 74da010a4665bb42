"""Import and export saved simulations of Park 2023."""
