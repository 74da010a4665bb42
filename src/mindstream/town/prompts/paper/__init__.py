"""What is asked of a resident that lives step by step, as in Park 2023."""
