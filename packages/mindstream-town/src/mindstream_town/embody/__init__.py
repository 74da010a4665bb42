"""A person lives in a town, as a resident or a visitor: what the person does is taken in by the clockwork."""
