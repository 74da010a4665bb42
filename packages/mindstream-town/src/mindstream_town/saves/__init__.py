"""Import and export of saved simulations (Park 2023)."""
