"""Plans without a model, by a small grammar: arithmetic, word problems, "the X of the Y", comparisons of two.

`plan_by_rules` is the rule of `MakePlan`; each other module reads one kind of task, or says nothing.
"""
