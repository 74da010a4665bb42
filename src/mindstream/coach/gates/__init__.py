"""Gates decide for each utterance whether its answer waits for the reasoner, and whether the reasoner is needed at all.

See docs/gates.md.
"""
