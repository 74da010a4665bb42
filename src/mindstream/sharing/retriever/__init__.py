"""A retriever that learns from every admission: a frozen embedding and a trained head (Gao 2024, 3.2)."""
