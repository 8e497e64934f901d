"""The families of encoders that `hat import` knows: which settings, which table and which vocabulary each has.

`hat import DIR` finds the family by `model_type` in config.json. A family that is not here is refused with the list.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..data.files import Fields
from ..data.sentencepiece_bpe import MODEL
from ..data.tokenizer_bpe import TOKENIZER, VOCABULARY, TokenizerBpe
from . import bart, bert, like_bert, released_hat, roberta, rotary
from .hugging_face import read_pieces, read_symbols
from .rename import Converted

MINILM = "minilm"  # the BERT of an installed package
NO_TOKENS = ("<pad>", "<unk>")  # special symbols that a vocabulary of today may lack
GPT2_FILES = "vocab.json and merges.txt"
OF_TOKENIZER = f"{TOKENIZER} or {VOCABULARY}"


@dataclass(frozen=True)
class Release:
    """How the folder of a release is read; `fixed`, `sizes`, `defaults` and `target` as in `read_config`.

    Attributes:
        convert: weights and config to a checkpoint's.
        covers: models of this family.
        left_out: what of a folder has no place here.
        starts: architectures that a checkpoint of the family starts.
        model_types: in config.json; the name of the family is another one.
        symbols: the lines of dict.txt for that many rows of the embedding; None without the files of the vocabulary.
        vocabulary: names of these files.
        tokenizer: reads the vocabulary for that many rows where it decides their order; `convert` takes it.
        rename: gives the settings of published files the names that `convert` knows.
        has_code: published folders name code in `auto_map`, which computes what transformers' class does.
    """

    target: str
    fixed: Mapping[str, Any]
    sizes: Sequence[str]
    convert: Callable[..., Converted]
    covers: str
    left_out: str
    starts: tuple[str, ...]
    model_types: tuple[str, ...] = ()
    symbols: Callable[[Path, int], list[str] | None] = read_symbols
    vocabulary: str = GPT2_FILES
    defaults: Mapping[str, Any] | None = None
    tokenizer: Callable[[Path, int], TokenizerBpe] | None = None
    rename: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
    has_code: bool = False


def of_rotary(
    family: rotary.Rotary,
    covers: str,
    left_out: str,
    model_types: tuple[str, ...],
    fixed: Mapping[str, Any],
    defaults: Mapping[str, Any],
    may_lack: Container[str] = (),
    rename: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict,
    has_code: bool = True,
) -> Release:
    """Describes a family with rotary positions."""
    return Release(
        "hat_roberta",
        fixed,
        (*SIZES, *(key for key in defaults if key.endswith("_eps"))),
        family.convert,
        covers,
        left_out,
        (*family.architectures, *roberta.SEGMENTS),
        model_types,
        vocabulary=OF_TOKENIZER,
        defaults=defaults,
        tokenizer=partial(bert.read_tokenizer, may_lack=may_lack),
        rename=rename,
        has_code=has_code,
    )


SIZES = (
    *("hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers"),
    *("vocab_size", "max_position_embeddings"),
)
NO_BIASES = {"attention_bias": False, "mlp_bias": False}
TIED = {"tie_word_embeddings": True}
HEADS = "heads for other tasks"
POOLER = f"the pooler, {HEADS}"
OF_ROBERTA = (*roberta.FLAT, *roberta.SEGMENTS)
OF_BERT = (*bert.FLAT, *bert.SEGMENTS, "poolingformer_base", "ernie_sparse_base", "hat_units_minilm", *bert.SEQ2SEQ)
MODERNBERT = rotary.Rotary(
    rotary.MODERNBERT,
    ("hat_modernbert_base", "hat_modernbert_large"),
    rotary.modernbert,
    ("hidden_activation", "classifier_activation"),
)
EUROBERT = rotary.Rotary(rotary.EUROBERT, ("hat_eurobert_210m",), rotary.eurobert)
ULTRABERT = rotary.Rotary(rotary.ULTRABERT, ("hat_eurobert_210m",), rotary.ultrabert)
NOMIC = rotary.Rotary(rotary.NOMIC, ("hat_nomic_bert",), rotary.nomic)
GTE = rotary.Rotary(rotary.GTE, ("hat_gte_base",), rotary.gte)
JINA_V3 = rotary.Rotary(rotary.JINA_V3, ("hat_jina_v3",), rotary.jina_v3)
OF_NOMIC: dict[str, Any] = {
    "prenorm": False,
    "use_rms_norm": False,
    "rotary_emb_fraction": 1.0,
    "rotary_emb_interleaved": False,
}
OF_NOMIC |= {"qkv_proj_bias": False, "mlp_fc1_bias": False, "mlp_fc2_bias": False, "causal": False, "num_experts": 0}
OF_NOMIC |= {"rotary_scaling_factor": None, "rotary_emb_scale_base": None, "parallel_block": False}
OF_NEW = {"position_embedding_type": "rope", "layer_norm_type": "layer_norm", "logn_attention_scale": False}
OF_JINA = {"position_embedding_type": "rotary", "is_decoder": False, "add_cross_attention": False}

RELEASES = {
    "modernbert": of_rotary(
        MODERNBERT,
        "ModernBERT, Ettin, mmBERT, gte-modernbert, modernbert-embed, granite-embedding r2, BioClinical ModernBERT",
        HEADS,
        ("modernbert",),
        NO_BIASES | TIED | {"norm_bias": False, "decoder_bias": True},
        {"norm_eps": 1e-5, "local_attention": 128, "hidden_activation": "gelu"},
        has_code=False,
    ),
    "eurobert": of_rotary(
        EUROBERT,
        "EuroBERT 210m, 610m and 2.1B",
        HEADS,
        ("eurobert",),
        NO_BIASES,
        {"rms_norm_eps": 1e-5, "hidden_act": "silu"},
        NO_TOKENS,
    ),
    "ultrabert": of_rotary(
        ULTRABERT,
        "UltraBERT",
        f"the masked-LM head, {HEADS}",
        ("ultrabert",),
        NO_BIASES,
        {"rms_norm_eps": 1e-6, "hidden_act": "silu"},
        NO_TOKENS,
    ),
    "nomic_bert": of_rotary(
        NOMIC,
        "nomic-embed-text v1 and v1.5, snowflake-arctic-embed-m-long",
        f"{POOLER}, the second token type",
        ("nomic_bert",),
        OF_NOMIC | TIED,
        {"layer_norm_eps": 1e-12, "hidden_act": "silu"},
        rename=rotary.names_of_nomic,
    ),
    "gte": of_rotary(
        GTE,
        "gte-multilingual-base, gte-base-en-v1.5 and gte-large-en-v1.5, snowflake-arctic-embed-m-v2.0",
        POOLER,
        ("gte", "new"),
        OF_NEW | TIED,
        {"layer_norm_eps": 1e-12, "hidden_act": "gelu"},
    ),
    "jina_v3": of_rotary(
        JINA_V3,
        "jina-embeddings-v3",
        f"{POOLER}, adapters for tasks (LoRA)",
        ("jina_embeddings_v3",),
        OF_JINA | TIED,
        {"layer_norm_eps": 1e-5, "hidden_act": "gelu"},
        rename=rotary.names_of_jina,
    ),
    "xlm_roberta": Release(
        "fairseq's XLM-RoBERTa",
        roberta.FIXED_XLM,
        roberta.REQUIRED,
        roberta.ROBERTA.convert,
        "XLM-RoBERTa, bge-m3, multilingual-e5, snowflake-arctic-embed-l-v2.0",
        POOLER,
        OF_ROBERTA,
        ("xlm-roberta",),
        read_pieces,
        MODEL,
        roberta.DEFAULTS,
    ),
    "camembert": Release(
        "hat_roberta",
        {
            name: value
            for name, value in roberta.FIXED.items()
            if name not in ("model_type", "bos_token_id", "eos_token_id")
        },
        roberta.REQUIRED,
        roberta.ROBERTA.convert,
        "camembert-base and -large, sentence-camembert",
        POOLER,
        OF_ROBERTA,
        ("camembert",),
        vocabulary=OF_TOKENIZER,
        defaults=roberta.DEFAULTS,
        tokenizer=bert.read_tokenizer,
    ),
    "roberta": Release(
        "fairseq's RoBERTa",
        roberta.FIXED,
        roberta.REQUIRED,
        roberta.ROBERTA.convert,
        "RoBERTa, all-distilroberta, e5 of RoBERTa",
        POOLER,
        OF_ROBERTA,
        ("roberta",),
        defaults=roberta.DEFAULTS,
    ),
    "bert": Release(
        "hat_roberta",
        bert.FIXED,
        bert.REQUIRED,
        bert.BERT.convert,
        "BERT, MiniLM, LegalBERT, SciBERT, BioBERT, bge v1.5, e5, gte (v1), snowflake-arctic-embed xs, s, m and l",
        "the pooler, next-sentence prediction, the second token type",
        OF_BERT,
        ("bert",),
        vocabulary=OF_TOKENIZER,
        tokenizer=bert.read_tokenizer,
        defaults=bert.DEFAULTS,
    ),
    "distilbert": Release(
        "hat_roberta",
        {"hidden_act": "gelu"},
        roberta.REQUIRED,
        like_bert.DISTILBERT.convert,
        "DistilBERT, multilingual DistilBERT, msmarco-distilbert",
        HEADS,
        OF_BERT,
        ("distilbert",),
        vocabulary=OF_TOKENIZER,
        tokenizer=bert.read_tokenizer,
        rename=like_bert.names_of_distilbert,
    ),
    "electra": Release(
        "hat_roberta",
        {name: value for name, value in bert.FIXED.items() if name != "model_type"},
        bert.REQUIRED,
        like_bert.electra,
        "ELECTRA base and large (discriminators)",
        f"the discriminator, the second token type, {HEADS}",
        OF_BERT,
        ("electra",),
        vocabulary=OF_TOKENIZER,
        tokenizer=bert.read_tokenizer,
        defaults=bert.DEFAULTS,
    ),
    "bart": Release(
        "fairseq's BART",
        bart.FIXED,
        bart.REQUIRED,
        bart.convert,
        "BART, for hat_bart and fairseq's BART",
        "nothing",
        ("hat_bart_base", "hat_bart_large"),
        ("bart",),
    ),
    "mbart": Release(
        "hat_bart",
        bart.MBART,
        bart.REQUIRED,
        bart.mbart,
        "mbart-large-cc25, mbart-large-50, for document translation with hat_bart",
        "nothing; language codes are entries of the dictionary that no text has",
        ("hat_mbart_large",),
        ("mbart",),
        vocabulary=OF_TOKENIZER,
        tokenizer=bert.read_tokenizer,
        defaults={"activation_function": "gelu"},
    ),
    "hierarchical_transformer": Release(
        "a hierarchical_transformer",
        roberta.BERT,
        released_hat.REQUIRED,
        released_hat.convert,
        "the Hierarchical Attention Transformers of Chalkidis et al. 2022",
        "the unused positions of segments",
        roberta.SEGMENTS,
    ),
}
OWN_KEYS = {"encoder_layout", "max_sentences"}  # of a released hierarchical_transformer
RELATIVE = "it adds relative positions to the attention, which no kernel here does"
REFUSED = {
    **dict.fromkeys(("mpnet", "t5"), RELATIVE),
    **dict.fromkeys(("deberta", "deberta-v2"), "its attention is to content and to relative positions apart"),
    "albert": "its layers share one set of weights, and its embedding is narrower than they are",
    "longformer": "it has projections of its own for global tokens; RoBERTa reads long documents here, too",
    "big_bird": "its blocks that attend to everything and to random blocks are other ones than here",
}


def family_of(path: Path) -> str:
    """Returns the family that a config.json states; ValueError with the list for another one."""
    record = Fields.read(path).record
    if record.keys() >= OWN_KEYS:
        return "hierarchical_transformer"
    stated = record.get("model_type")
    if stated == "xlm-roberta" and record.get("position_embedding_type") == "rotary":
        return "jina_v3"
    for name, release in RELEASES.items():
        if stated in release.model_types:
            return name
    raise ValueError(
        f"{path}: no family of hat import has the model_type {stated!r:.80}; "
        f"{REFUSED.get(str(stated), 'known are ' + ', '.join(RELEASES))}"
    )


def check_code(path: Path, release: Release) -> None:
    """Raises ValueError if a folder brings code that may compute something else than its family."""
    if Fields.read(path).record.get("auto_map") and not release.has_code:
        raise ValueError(
            f"{path}: auto_map names code of its own, which is not run and may compute something else; if the weights "
            "are those of transformers' class, remove auto_map from config.json"
        )


def listing() -> str:
    """Returns the families, one in three lines."""
    lines = []
    for name, release in RELEASES.items():
        lines += [
            f"{name}: {release.covers}",
            f"  starts {', '.join(release.starts)}",
            f"  skips {release.left_out}",
        ]
    return "\n".join(lines)
