"""What planners, solvers and ReAct are asked."""
