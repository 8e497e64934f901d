"""fairseq's side of the networks: flags, architectures, checkpoints, and the signatures that fairseq calls."""

from hat_fairseq.register import register

register()  # so that importing this package alone registers everything
