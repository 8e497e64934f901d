"""The models and the tokenizer for Hugging Face's transformers; importing this package registers them there.

modeling.py         `HatConfig`, the settings of a model; the encoders as models of transformers
generation.py       the encoder-decoder, and `generate`
tokenization.py     `HatTokenizer`: documents to ids as `hat preprocess` makes them, and ids to text
documents.py        what a call of the tokenizer gives, as records
call_options.py     its options
places.py           where tokens stand in the texts
encoding.py         what it returns
modeling_hat.py     the file of a saved folder with which `trust_remote_code=True` finds this package

Nothing here imports fairseq.
"""

import transformers

from .generation import HatForConditionalGeneration
from .modeling import HatConfig, HatForMaskedLM, HatForSequenceClassification, HatModel
from .tokenization import HatTokenizer

__all__ = [
    "HatConfig",
    "HatForConditionalGeneration",
    "HatForMaskedLM",
    "HatForSequenceClassification",
    "HatModel",
    "HatTokenizer",
]

transformers.AutoConfig.register(HatConfig.model_type, HatConfig)
transformers.AutoTokenizer.register(HatConfig, slow_tokenizer_class=HatTokenizer)
transformers.AutoModel.register(HatConfig, HatModel)
transformers.AutoModelForMaskedLM.register(HatConfig, HatForMaskedLM)
transformers.AutoModelForSeq2SeqLM.register(HatConfig, HatForConditionalGeneration)
transformers.AutoModelForSequenceClassification.register(HatConfig, HatForSequenceClassification)
