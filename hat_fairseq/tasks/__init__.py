"""fairseq tasks and their datasets: binary data to batches, and generated tokens to scores during validation."""

from hat_fairseq.register import register

register()  # so that importing this package alone registers everything
