"""Which pairs are doubted, and by what."""
