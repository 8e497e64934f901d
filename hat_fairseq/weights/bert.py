"""Converts Hugging Face's BERT (Devlin et al. 2019) for `hat_roberta`, `hierarchical_transformer` and their like.

MiniLM, SciBERT, LegalBERT and BioBERT are the same network. It computes what RoBERTa computes; three tables differ:

- The rows of the embedding and of the output move, because fairseq's special symbols come first and `<mask>` last
  (`data/tokenizer_bpe.py`).
- Positions begin after two rows, those up to the padding's.
- The row of the first token type is added to every position. fairseq's RoBERTa has no token types, so those of the
  second text of a pair are left out.
"""

from collections.abc import Container
from pathlib import Path
from typing import Any

from ..data.dictionary import SPECIAL
from ..data.tokenizer_bpe import TOKENIZER, VOCABULARY, TokenizerBpe, find_tokenizer
from ..networks import NETWORKS
from . import roberta
from .rename import nearest_architecture
from .tables import Table

FIXED: dict[str, Any] = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}
FIXED |= {"is_decoder": False, "add_cross_attention": False}
DEFAULTS = roberta.DEFAULTS | {"type_vocab_size": 2}
REQUIRED = (*roberta.REQUIRED, "type_vocab_size")
TABLE = Table(
    roberta.TABLE.rules,
    prefixes=("bert.",),
    renamed={
        r"LayerNorm\.gamma$": "LayerNorm.weight",  # in folders of 2019
        r"LayerNorm\.beta$": "LayerNorm.bias",
        r"^cls\.predictions\.(transform\.)?": "lm_head.",
        r"^lm_head\.LayerNorm": "lm_head.layer_norm",
    },
    left_out={
        r"pooler\.": "the pooler, which fairseq's RoBERTa does not have",
        r"cls\.seq_relationship\.": "next-sentence prediction",
        r"(classifier|qa_outputs)\.": "heads for other tasks",
    },
)
FLAT, SEGMENTS = (*roberta.FLAT, "hat_roberta_minilm"), (*roberta.SEGMENTS, "hierarchical_transformer_minilm")
SEQ2SEQ = ("hat_bart_base", "hat_bart_large", "hat_bart_minilm")
POOLED_LAYERS = {12: "6-8", 24: "15-20"}  # of the paper, by the number of layers
WINDOW = 256  # tokens on either side in a folder for long documents: as in Longformer
LONGEST = 4096  # tokens of the starts for long documents
MOST_UNUSED = 127  # rows beyond the vocabulary: tables are filled up to a multiple of 128 at most


def read_tokenizer(directory: Path, vocab_size: int, may_lack: Container[str] = ()) -> TokenizerBpe:
    """Reads the vocabulary of an encoder of so many rows; ValueError for one of another.

    Special entries must be there, except those of `may_lack`, under fairseq's names.
    """
    if not any((directory / name).is_file() for name in (TOKENIZER, VOCABULARY)):
        raise ValueError(f"{directory} has neither {TOKENIZER} nor {VOCABULARY}, which say whose the rows are")
    tokenizer = TokenizerBpe.load(path := find_tokenizer(directory))
    rows = tokenizer.rows
    lacks = [symbol for symbol, row in zip(SPECIAL, rows, strict=False) if row is None and symbol not in may_lack]
    if lacks or len(rows) != len(SPECIAL) + len(tokenizer.symbols) + 1:
        raise ValueError(f"{path} lacks one of [CLS], [PAD], [SEP], [UNK] and [MASK]: it is no vocabulary of BERT")
    longest = max(row for row in rows if row is not None) + 1
    if not longest <= vocab_size <= longest + MOST_UNUSED:
        raise ValueError(f"{path} has {longest} rows, and the embedding {vocab_size}: the vocabulary of another model")
    return tokenizer


def start_flags(config: dict[str, Any]) -> list[list[str]]:
    """Returns the flags of each network for it: of RoBERTa, three for long documents, for evidence, an encoder-decoder.

    Windows and Poolingformer have copies of the positions beyond the own ones, as in Longformer, so does ERNIE-Sparse.
    The layers of Poolingformer's second level are those after the middle, as in Zhang et al. 2021. The decoder of the
    encoder-decoder is new, and has the sizes of the encoder (Rothe et al. 2020, BERT2RND).
    """
    flat, hierarchical = roberta.start_flags(config, FLAT, SEGMENTS)
    sizes, layers = roberta.encoder_sizes(config), config["num_hidden_layers"]
    pooled = POOLED_LAYERS.get(layers, f"{layers // 2}-{max(layers // 2, 3 * layers // 4 - 1)}")
    sizes_of_pooling = sizes | {"encoder_attention_layers": pooled}
    longest = ["--max-positions", str(LONGEST)]
    decoder = {size.replace("encoder", "decoder"): value for size, value in sizes.items() if size.startswith("encoder")}
    own = config["max_position_embeddings"] - roberta.UNUSED_POSITIONS
    shorter = ["--segment-length", str(own)] if own < NETWORKS["hat_units"].segment_length else []
    return [
        flat,
        [*flat[:-2], *longest, "--extend-positions", "tile", "--encoder-attention", "window"],
        hierarchical,
        [*nearest_architecture(("poolingformer_base", "poolingformer_large"), sizes_of_pooling), *longest],
        [*nearest_architecture(("ernie_sparse_base",), sizes), *longest],
        [*nearest_architecture(("hat_units_minilm",), sizes), *shorter, *flat[-2:]],
        [*nearest_architecture(SEQ2SEQ, sizes | decoder), "--max-source-positions", str(own)],
    ]


def check_longest(own: int, longest: int | None) -> None:
    """Raises ValueError for fewer tokens than the weights have positions."""
    if longest is not None and longest < own:
        raise ValueError(f"--max-positions {longest}: the weights have {own} positions; give at least as many")


def package_flags(flat: list[str], own: int, longest: int | None) -> list[str]:
    """Returns the flags of a `hat_roberta` for `longest` tokens, by default the `own` positions of the weights.

    `flat`: its flags for these. ValueError for fewer tokens than the weights have positions.
    """
    check_longest(own, longest)
    windows = ["--extend-positions", "tile", "--encoder-attention", "window", "--attention-window", str(WINDOW)]
    return [*flat, *(windows if (longest or own) > own else []), "--max-positions", str(longest or own)]


BERT = roberta.Learned(TABLE, start_flags, unused=0)
