"""A town that lives step by step as Park 2023 tells it: plans in three levels, own acts as memories, talks by lines."""
