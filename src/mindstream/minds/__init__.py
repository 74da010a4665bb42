"""Minds: a responder that talks with a user, and reasoners that think in the background, over one memory and log."""
