"""Who answers: one seam for every model, and the prompts that are put to it."""
