"""A log told anew as OpenTelemetry spans, and sent on."""
