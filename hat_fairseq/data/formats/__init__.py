"""Formats in which datasets are released, and what their readers share."""
