"""What a town's history shows when it is counted: who knows what, who knows whom, who was where, what cannot be."""
