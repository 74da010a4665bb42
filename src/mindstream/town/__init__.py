"""The town: residents who perceive, remember, plan, react, talk and reflect, on a map, by a clock."""
