"""Many runs of one town: with other seeds, with parts of its residents left out."""
