"""Questions answered from memory alone: published forms, arms, results (`memory evaluate`)."""
