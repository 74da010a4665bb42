"""Language models: requests, prompts, providers, wrappers, embedders."""
