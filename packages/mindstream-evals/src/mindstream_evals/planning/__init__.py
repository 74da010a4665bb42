"""Sets of questions, solved by several ways: how many are right, and what they took (Xu 2023)."""
