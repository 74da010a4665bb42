"""Read a town without changing it: history, timelines, explanations, estimates."""
