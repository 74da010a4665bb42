"""Strategies of solving a task: ReWOO, ReAct, Plan-and-Execute, and remembered plans."""
