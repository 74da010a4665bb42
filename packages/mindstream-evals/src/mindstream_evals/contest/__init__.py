"""The coach against one plain agent on the same models: the same talks, blind pairs, both orders."""
