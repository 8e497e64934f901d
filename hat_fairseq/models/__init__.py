"""fairseq models: each composes `modules`, reads its flags once into a dataclass, and names its architectures."""

from hat_fairseq.register import register

register()  # so that importing this package alone registers everything
