"""Corrections, forgetting on request, and audits of a memory."""
