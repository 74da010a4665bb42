"""Endpoints and files that answer: their addresses, clients, limits and failures."""
