"""Beam search for long sources, and `hat join` (chunks to documents)."""
