"""A resident's step: it perceives, remembers, plans, reacts, talks, reflects (Park 2023)."""
