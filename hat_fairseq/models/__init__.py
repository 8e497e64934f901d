"""fairseq models: thin compositions of `modules`, one dataclass read once, named architectures. No arithmetic."""

import fairseq as fairseq  # before the modules of this package: it registers them, see hat_fairseq/__init__.py
