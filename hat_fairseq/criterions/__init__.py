"""fairseq criterions: label smoothing in chunks, labels, answers, evidence, self-attention regularization."""

from hat_fairseq.register import register

register()  # so that importing this package alone registers everything
