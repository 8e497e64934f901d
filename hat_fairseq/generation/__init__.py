"""Beam search for long sources, fairseq's generator for them, and `hat join` (chunks to documents)."""
