"""Convert a log into OpenTelemetry spans, and send them to a collector."""
