"""Residents with a model, in scenes: a day, a talk and a reflection are one reply each; rules do the rest."""
