"""Questions answered from memory alone: the published forms, what is shown, what was right (`memory evaluate`)."""
