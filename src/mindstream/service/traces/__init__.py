"""Converts a log into OpenTelemetry spans, and sends them."""
