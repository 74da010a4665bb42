"""Reading a town: history, timelines, explanations, estimates. Nothing is written."""
