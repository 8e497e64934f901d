"""Scores for generated documents, each with an interval and a signature that says how it was computed."""
