"""Where residents live: tiles or bare places, the ways between them, what stands there and in which state it is."""
