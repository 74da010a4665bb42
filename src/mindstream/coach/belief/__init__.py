"""The belief reasoner: infers the phase, thinks with that phase's instructions, makes and adapts the plan."""
