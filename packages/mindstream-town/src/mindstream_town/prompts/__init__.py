"""What residents ask a model, typed; where none is configured, what stands in for it is beside each."""
