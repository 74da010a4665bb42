"""The paper's way (Park 2023): plans in three levels, own acts as memories, talks line by line."""
