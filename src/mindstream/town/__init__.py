"""The town: residents who perceive, remember, plan, react, talk and reflect (Park 2023), and the world they live in."""
