"""The ways of solving a task: ReWOO, ReAct, plan and execute, and what was planned before."""
