"""How a memory lasts, fades, sleeps and dreams."""
