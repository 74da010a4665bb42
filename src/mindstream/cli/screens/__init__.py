"""What goes on, as it is shown: a talk, a life, a run of a plan, a town."""
