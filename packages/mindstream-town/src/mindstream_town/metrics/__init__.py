"""Measures of a town's history: spread of facts, acquaintance, attendance, conduct."""
