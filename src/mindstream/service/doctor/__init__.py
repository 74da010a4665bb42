"""The checks of `mindstream doctor`, and the repair of a damaged database."""
