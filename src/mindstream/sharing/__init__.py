"""Memory sharing (Gao 2024): pools of exemplars that several minds write and recall from."""
