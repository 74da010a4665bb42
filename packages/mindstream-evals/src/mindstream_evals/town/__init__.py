"""The evaluation of Park 2023 (section 6): how believably residents answer, and which part of the memory
contributes."""
