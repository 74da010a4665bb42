"""The three studies of memory sharing (Gao 2024, 4): shots, domain against single pool, growth; and two controls."""
