"""What is done for people's rights: how long words are kept, everything of a person, a tenant that goes, who did it."""
