"""Beam search for long sources; `hat generate` (in shards, resumable) and `hat join` (chunks to documents)."""
