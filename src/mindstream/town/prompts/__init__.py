"""What residents ask a model, typed; the rules that stand in are in town/rules."""
