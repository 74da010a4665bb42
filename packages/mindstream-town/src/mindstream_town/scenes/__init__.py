"""Mode of residents with a model: one reply each for a day, a talk and a reflection; rules decide the rest."""
