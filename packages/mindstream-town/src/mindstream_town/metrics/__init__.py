"""Measures of a town's history: spread of news, acquaintance, attendance, conduct."""
