"""The studies of memory sharing (Gao 2024, section 4): shots, domain or single pool, growth; and two controls."""
