"""Minds: a talker and its reasoners over one stream."""
