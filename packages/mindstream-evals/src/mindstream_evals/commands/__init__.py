"""Commands of evaluations: `mindstream coach`, `gate`, and those that extend other groups."""
