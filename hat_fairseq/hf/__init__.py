"""The tokenizer of hat_fairseq for Hugging Face's transformers; importing this package registers it there.

configuration.py    `HatConfig`: the numbers of a model, and the files that each saved folder needs
tokenization.py     `HatTokenizer`: documents to ids as `hat preprocess` makes them, and ids to text
modeling_hat.py     the file of a saved folder with which `trust_remote_code=True` finds this package

Nothing here imports fairseq.
"""

from transformers import AutoConfig, AutoTokenizer

from .configuration import HatConfig
from .tokenization import HatTokenizer

AutoConfig.register(HatConfig.model_type, HatConfig)
AutoTokenizer.register(HatConfig, slow_tokenizer_class=HatTokenizer)
