"""Corrections, forgetting on request, and audits for data quality."""
