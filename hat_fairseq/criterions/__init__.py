"""Losses that fairseq lacks."""
