"""Loads the model and the tokenizer of this folder with the package hat_fairseq: `pip install hat_fairseq`."""

from hat_fairseq.hf import *  # noqa: F403
