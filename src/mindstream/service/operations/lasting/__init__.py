"""What takes its time: an operation that goes on, how it is shown, and what is kept of it."""
