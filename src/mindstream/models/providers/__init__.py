"""Models behind endpoints and in this process, one adapter per protocol."""
