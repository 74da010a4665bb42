"""The coach against a plain agent on the same models: the same conversations, blind pairs, both orders."""
