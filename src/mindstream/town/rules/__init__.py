"""What residents do without a model; importing this lets rules stand in for the town's prompts."""

from mindstream.town.rules import day, interview, meeting, mishaps, talking, tasks

__all__ = ["day", "interview", "meeting", "mishaps", "talking", "tasks"]
