"""What M2, M1 and M0 are asked."""
