"""The models and the tokenizer for Hugging Face's transformers; importing this package registers them there.

config.py           `HatConfig`, the settings of a model
pretrained.py       what all models here share
modeling.py         the encoders as models of transformers
generation.py       the encoder-decoder, and `generate`
recording.py        states of layers and weights of attentions, where they are asked for
vocabulary.py       the dictionaries and files of a folder as the vocabulary of a tokenizer, and ids to text
tokenization.py     `HatTokenizer`: documents to ids as `hat preprocess` makes them
documents.py        what a call of the tokenizer gives, as records
call_options.py     its options
encoding.py         what it returns
modeling_hat.py     the file of a saved folder with which `trust_remote_code=True` finds this package

Nothing here imports fairseq.
"""

import transformers

from ..model_folder import CLASSES
from .config import HatConfig
from .generation import HatForConditionalGeneration
from .modeling import (
    HatForMaskedLM,
    HatForMultipleChoice,
    HatForQuestionAnswering,
    HatForSegmentClassification,
    HatForSequenceClassification,
    HatForTokenClassification,
    HatModel,
)
from .tokenization import HatTokenizer

__all__ = [
    "HatConfig",
    "HatForConditionalGeneration",
    "HatForMaskedLM",
    "HatForMultipleChoice",
    "HatForQuestionAnswering",
    "HatForSegmentClassification",
    "HatForSequenceClassification",
    "HatForTokenClassification",
    "HatModel",
    "HatTokenizer",
]

transformers.AutoConfig.register(HatConfig.model_type, HatConfig)
transformers.AutoTokenizer.register(HatConfig, slow_tokenizer_class=HatTokenizer)
for _auto, _own in CLASSES.items():
    if _auto != "AutoConfig":
        getattr(transformers, _auto).register(HatConfig, globals()[_own])
