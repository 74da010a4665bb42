"""The coach against a plain agent on the same models: both hold the same conversations, and a judge compares each pair
blind, in both orders."""
