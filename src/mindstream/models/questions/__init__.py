"""Typed questions that are good for anything; others stand where they are asked."""
