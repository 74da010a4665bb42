"""M0, M1, M2: a goal pursued for long, by a mind that sleeps (docs/life.md)."""
