"""The facts reasoner: what the user says of themselves becomes notes."""
