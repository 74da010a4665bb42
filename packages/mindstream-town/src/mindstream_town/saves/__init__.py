"""Saved simulations of Park 2023, read and written."""
