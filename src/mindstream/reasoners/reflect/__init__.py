"""The reflection reasoner: when enough that matters has gathered, it becomes thoughts."""
