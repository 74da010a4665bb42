"""The reflection reasoner: when enough important observations have been stored, it derives thoughts from them."""
