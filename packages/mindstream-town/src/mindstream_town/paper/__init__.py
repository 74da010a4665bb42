"""The mode of the paper (Park 2023): plans in three levels, memories of own acts, talks line by line."""
