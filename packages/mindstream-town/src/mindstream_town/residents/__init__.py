"""What a resident does in a step: it sees, remembers, plans, reacts, talks, reflects (Park 2023)."""
