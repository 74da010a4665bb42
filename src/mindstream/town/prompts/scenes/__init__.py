"""What is asked of a resident that lives in scenes."""
