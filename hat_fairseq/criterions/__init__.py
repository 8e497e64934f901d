"""Losses that fairseq lacks."""

import fairseq as fairseq  # before the modules of this package: it registers them, see hat_fairseq/__init__.py
