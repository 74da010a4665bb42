"""The tools of the roles M0, M1 and M2 of a life."""
