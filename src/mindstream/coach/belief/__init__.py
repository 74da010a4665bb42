"""The belief reasoner: infers the phase, thinks in that phase with its own instructions, makes and adapts the plan."""
