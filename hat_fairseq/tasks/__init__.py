"""fairseq tasks, and what they are made of: datasets of documents and the way back to text."""

import fairseq as fairseq  # before the modules of this package: it registers them, see hat_fairseq/__init__.py
