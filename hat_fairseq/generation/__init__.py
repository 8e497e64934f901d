"""Beam search for long sources; `hat generate` (in shards, resumable) and `hat join` (chunks to documents)."""

import fairseq as fairseq  # before the modules of this package: it registers them, see hat_fairseq/__init__.py
