"""What an utterance does in a conversation: sure words (moves.yaml), and a classifier where they come in others."""
