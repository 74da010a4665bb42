"""What a resident does in a step: perceive, remember, plan, react, talk, reflect (Park 2023)."""
