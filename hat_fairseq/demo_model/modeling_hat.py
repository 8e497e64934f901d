"""Loads the model and the tokenizer of this folder with the package hat_fairseq: `pip install hat_fairseq`.

Transformers runs this file with `trust_remote_code=True` only. After `import hat_fairseq.hf` that is not needed.
"""

from hat_fairseq.hf import *  # noqa: F403
