"""The evaluation of Park 2023 (section 6): who answers as its resident would, and which part of the memory does it."""
