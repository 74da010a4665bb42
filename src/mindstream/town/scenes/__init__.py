"""Residents on a model, in scenes: a day is planned in one reply, a talk is one, a reflection is one; rules do the rest."""
