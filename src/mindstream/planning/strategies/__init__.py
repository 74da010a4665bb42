"""Further strategies of solving a task: ReAct, and remembered plans (ReWOO and Plan-and-Execute are in run.py)."""
