"""What happens to the output of fairseq-generate."""

import fairseq as fairseq  # before the modules of this package: it registers them, see hat_fairseq/__init__.py
