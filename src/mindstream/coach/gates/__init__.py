"""Gates decide twice for each utterance: does the Talker wait, and is the Reasoner needed at all? See docs/gates.md."""
