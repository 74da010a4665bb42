"""What a domain is made of: packs are data in folders; here is their shape and how they are read."""
