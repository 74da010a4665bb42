"""Sleep, dreams, importance ratings, and replay of the decay rules."""
