"""A town that lives step by step as Park 2023 tells it: three levels of plans, own acts as memories, talks line by line."""
