"""The stream: everything that a mind heard, said, saw, thinks, believes, plans or dreamt."""
