"""Plans as data: written down before any tool runs, checked, drawn, edited, saved, run again (Xu 2023).

`plan.Plan` and `plan.PlannedStep` are the plan; `arguments.Reference` and `arguments.bind` say how a step is called
with what another one found; `check.check` finds what would go wrong; `formats/` reads what planners write.
"""
