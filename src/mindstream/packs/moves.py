"""What the moves of an utterance (moves.yaml) ask of a mind."""

from __future__ import annotations

ASKS = frozenset({"plan", "stepwise", "resources"})
"""Moves that ask for the Reasoner's work in any phase."""
ADAPTS = frozenset({"dislike", "next", "done", "add"})
"""Moves that change a plan that is there, or that is being made."""
CONSENTS = frozenset({"yes", "okay", "like"})
SOCIAL = frozenset({"greet", "bye", "thanks", "chat", "okay", "rude", "later", "who", "recall"})
"""Moves that tell the Reasoner nothing."""
FILLING = frozenset({"question", "yes", "no", "complaint", "like"})
"""Moves that a social sentence may make besides: 'sure, thanks', 'who are you?'."""
PUTS_OFF = frozenset({"later", "vent"})
"""Moves that want no plan now, or only an ear."""
ABOUT_A_STEP = ("plan_again", "why_this", "how_long", "safe", "proof")
"""Questions about the step the user was given, the clearest first; the plan answers them."""
