"""A memory's stream: the records of everything that a mind heard, said, saw, thinks, believes, plans or dreamt."""
