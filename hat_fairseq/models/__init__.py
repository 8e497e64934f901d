"""fairseq models: thin compositions of `modules`, one dataclass read once, named architectures. No arithmetic."""

from hat_fairseq.register import register

register()  # whichever of the packages is imported first
