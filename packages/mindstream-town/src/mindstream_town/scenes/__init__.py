"""The mode `scenes`, for residents with a model. One reply plans a day, one writes a whole talk, and one writes a day's
reflection."""
