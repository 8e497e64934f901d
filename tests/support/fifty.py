"""The 50 encoders of `docs/encoders.md` as small folders: the keys of their files, with fewer layers and rows.

Weights are random, and of transformers' class. Tokenizers are trained on the spot, with the normalizers,
pre-tokenizers, post-processors and special tokens of the published ones.
"""

import json
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import transformers
from encoders_of_today import random_model
from sentencepiece_model import peer_tokenizer, write_model
from tokenizers import AddedToken, Regex, Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers_on_the_spot import CAMEMBERT, LLAMA, MODERN, byte_level, gemma, unigram, with_ends, word_piece

LAYERS = 2
CODE = {"auto_map": {"AutoModel": "owner/code--modeling.Model", "AutoConfig": "owner/code--configuration.Config"}}
Config = dict[str, Any]


def bert(width: int, layers: int, **more: Any) -> Config:
    heads = 16 if width == 1024 else 12
    sizes = {"hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads}
    sizes |= {"intermediate_size": 4 * width, "max_position_embeddings": 512, "type_vocab_size": 2}
    common = {"hidden_act": "gelu", "layer_norm_eps": 1e-12, "pad_token_id": 0, "position_embedding_type": "absolute"}
    return {"model_type": "bert"} | sizes | common | more


def roberta(width: int, layers: int, **more: Any) -> Config:
    ends = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "layer_norm_eps": 1e-5, "type_vocab_size": 1}
    return bert(width, layers) | {"model_type": "roberta", "max_position_embeddings": 514} | ends | more


def xlm(width: int, layers: int, **more: Any) -> Config:
    return roberta(width, layers) | {"model_type": "xlm-roberta", "output_past": True} | more


def distilbert(**more: Any) -> Config:
    sizes = {"dim": 768, "hidden_dim": 3072, "n_heads": 12, "n_layers": 6, "max_position_embeddings": 512}
    return {"model_type": "distilbert", "activation": "gelu", "sinusoidal_pos_embds": False} | sizes | more


def modernbert(**more: Any) -> Config:
    sizes = {"hidden_size": 768, "num_hidden_layers": 22, "num_attention_heads": 12, "intermediate_size": 1152}
    bases = {"global_rope_theta": 160000.0, "local_rope_theta": 10000.0, "global_attn_every_n_layers": 3}
    biases = {"attention_bias": False, "mlp_bias": False, "norm_bias": False, "decoder_bias": True}
    other = {"max_position_embeddings": 8192, "local_attention": 128, "norm_eps": 1e-5, "hidden_activation": "gelu"}
    return {"model_type": "modernbert", "classifier_activation": "gelu"} | sizes | bases | biases | other | more


EUROBERT = {"model_type": "eurobert", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12} | CODE
EUROBERT |= {"num_key_value_heads": 12, "intermediate_size": 3072, "max_position_embeddings": 8192, "head_dim": 64}
EUROBERT |= {"rms_norm_eps": 1e-5, "rope_theta": 250000, "rope_scaling": None, "hidden_act": "silu"}
EUROBERT |= {"attention_bias": False, "mlp_bias": False, "tie_word_embeddings": False, "clf_pooling": "late"}
GTE = bert(768, 12, model_type="new", max_position_embeddings=8192, type_vocab_size=1, pad_token_id=1) | CODE
GTE |= {"position_embedding_type": "rope", "rope_theta": 20000, "rope_scaling": {"factor": 8.0, "type": "ntk"}}
GTE |= {"layer_norm_type": "layer_norm", "logn_attention_scale": False, "pack_qkv": True, "unpad_inputs": False}
NOMIC = {"model_type": "nomic_bert", "n_embd": 768, "n_head": 12, "n_inner": 3072, "n_layer": 12} | CODE
NOMIC |= {"n_positions": 8192, "activation_function": "swiglu", "layer_norm_epsilon": 1e-12, "rotary_emb_base": 1000}
NOMIC |= {"rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False, "rotary_emb_scale_base": None}
NOMIC |= {"rotary_scaling_factor": None, "prenorm": False, "qkv_proj_bias": False, "mlp_fc1_bias": False}
NOMIC |= {"mlp_fc2_bias": False, "type_vocab_size": 2, "use_rms_norm": False, "causal": False, "parallel_block": False}
NOMIC |= {"tie_word_embeddings": True, "max_trained_positions": 2048, "pad_vocab_size_multiple": 64}
JINA = xlm(1024, 24, max_position_embeddings=8194, position_embedding_type="rotary", rotary_emb_base=20000.0) | CODE
JINA |= {"lora_rank": 4, "lora_alpha": 1, "emb_pooler": None, "use_flash_attn": True}
LONGFORMER = roberta(768, 12, model_type="longformer", attention_window=[512] * 12, max_position_embeddings=4098)
MPNET = roberta(768, 12, model_type="mpnet", relative_attention_num_buckets=32)
SENTIMENT = {"id2label": {"0": "negative", "1": "neutral", "2": "positive"}}


def settings(name: str, **more: Any) -> dict[str, Any]:
    return {"tokenizer_class": f"{name}Tokenizer", "model_max_length": 512} | more


def pieces() -> Tokenizer:
    """XLM-RoBERTa's, with the rules of its normaliser."""
    with tempfile.TemporaryDirectory() as folder:
        return Tokenizer.from_str(peer_tokenizer(write_model(Path(folder))).backend_tokenizer.to_str())


def of_roberta() -> Tokenizer:
    tokenizer = byte_level()
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    ends = (("</s>", tokenizer.token_to_id("</s>")), ("<s>", tokenizer.token_to_id("<s>")))
    tokenizer.post_processor = processors.RobertaProcessing(*ends, trim_offsets=True, add_prefix_space=False)
    return tokenizer


def of_modernbert() -> Tokenizer:
    """With entries for runs of spaces, and special tokens that hide private data."""
    tokenizer = with_ends(byte_level(MODERN), "[CLS]", "[SEP]")
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.add_tokens([AddedToken(" " * width) for width in range(12, 1, -1)])
    tokenizer.add_special_tokens(["<|endoftext|>", "<|padding|>", "|||IP_ADDRESS|||"])
    return tokenizer


def of_gemma() -> Tokenizer:
    tokenizer = with_ends(gemma(), "<bos>", "<eos>")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.add_special_tokens([*(f"<unused{number}>" for number in range(4)), "<start_of_turn>", "<end_of_turn>"])
    tokenizer.add_tokens([AddedToken("\n" * number, normalized=False) for number in range(1, 4)])
    return tokenizer


def of_llama() -> Tokenizer:
    words = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    words += r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    tokenizer = byte_level(LLAMA)
    split = pre_tokenizers.Split(Regex(words), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(False, use_regex=False)])
    tokenizer.add_special_tokens(["<|parallel_sep|>", "<|reserved_special_token_0|>"])
    with_ends(tokenizer, "<|begin_of_text|>", "<|end_of_text|>")
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True), tokenizer.post_processor])
    return tokenizer


def of_camembert() -> Tokenizer:
    tokenizer = with_ends(unigram(CAMEMBERT), "<s>", "</s>")
    tokenizer.normalizer = pieces().normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    return tokenizer


MAKERS: dict[str, Callable[[], Tokenizer]] = {
    "uncased": lambda: word_piece(True),
    "cased": lambda: word_piece(False),
    "pieces": pieces,
    "roberta": of_roberta,
    "modernbert": of_modernbert,
    "gemma": of_gemma,
    "llama": of_llama,
    "camembert": of_camembert,
}
made = cache(lambda kind: MAKERS[kind]().to_str())
LOWER, CASED = ("uncased", settings("Bert", do_lower_case=True)), ("cased", settings("Bert", do_lower_case=False))
PIECES, BYTES = ("pieces", settings("XLMRoberta")), ("roberta", settings("Roberta"))
AS_IT_IS = settings("PreTrained") | {"tokenizer_class": "PreTrainedTokenizerFast"}
MODERNBERT = ("modernbert", AS_IT_IS)
Encoder = tuple[str, Config, tuple[str, dict[str, Any]]]
FIFTY: dict[str, Encoder] = {  # class of transformers, config.json, kind and settings of the tokenizer
    "google-bert/bert-base-uncased": ("BertForMaskedLM", bert(768, 12), LOWER),
    "google-bert/bert-base-cased": ("BertForMaskedLM", bert(768, 12), CASED),
    "google-bert/bert-base-multilingual-cased": ("BertForMaskedLM", bert(768, 12, directionality="bidi"), CASED),
    "google-bert/bert-base-chinese": ("BertForMaskedLM", bert(768, 12, directionality="bidi"), CASED),
    "hfl/chinese-roberta-wwm-ext": ("BertForMaskedLM", bert(768, 12), LOWER),
    "sentence-transformers/all-MiniLM-L6-v2": ("BertModel", bert(384, 6), LOWER),
    "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2": ("BertModel", bert(384, 12), PIECES),
    "sentence-transformers/LaBSE": ("BertModel", bert(768, 12), CASED),
    "nlpaueb/legal-bert-base-uncased": ("BertForPreTraining", bert(768, 12, output_past=True), LOWER),
    "allenai/scibert_scivocab_uncased": ("BertModel", bert(768, 12), LOWER),
    "dmis-lab/biobert-v1.1": ("BertModel", bert(768, 12), CASED),
    "emilyalsentzer/Bio_ClinicalBERT": ("BertForMaskedLM", bert(768, 12), LOWER),
    "microsoft/BiomedNLP-BiomedBERT-base-uncased-abstract": ("BertForMaskedLM", bert(768, 12), LOWER),
    "ProsusAI/finbert": ("BertForSequenceClassification", bert(768, 12, **SENTIMENT), LOWER),
    "BAAI/bge-small-en-v1.5": ("BertModel", bert(384, 12), LOWER),
    "BAAI/bge-large-en-v1.5": ("BertModel", bert(1024, 24), LOWER),
    "BAAI/bge-large-zh-v1.5": ("BertModel", bert(1024, 24), LOWER),
    "intfloat/e5-base-v2": ("BertModel", bert(768, 12), LOWER),
    "intfloat/multilingual-e5-small": ("BertModel", bert(384, 12, tokenizer_class="XLMRobertaTokenizer"), PIECES),
    "thenlper/gte-base": ("BertModel", bert(768, 12), LOWER),
    "Snowflake/snowflake-arctic-embed-m": ("BertModel", bert(768, 12), LOWER),
    "mixedbread-ai/mxbai-embed-large-v1": ("BertModel", bert(1024, 24), LOWER),
    "deepset/gbert-base": ("BertForMaskedLM", bert(768, 12), ("cased", settings("Bert", do_lower_case=False))),
    "neuralmind/bert-base-portuguese-cased": ("BertForPreTraining", bert(768, 12), CASED),
    "DeepPavlov/rubert-base-cased": ("BertForMaskedLM", bert(768, 12), CASED),
    "distilbert/distilbert-base-uncased": ("DistilBertForMaskedLM", distilbert(), LOWER),
    "google/electra-base-discriminator": (
        "ElectraForPreTraining",
        bert(768, 12, model_type="electra", embedding_size=768),
        LOWER,
    ),
    "FacebookAI/roberta-base": ("RobertaForMaskedLM", roberta(768, 12), BYTES),
    "FacebookAI/roberta-large": ("RobertaForMaskedLM", roberta(1024, 24), BYTES),
    "sentence-transformers/all-distilroberta-v1": ("RobertaModel", roberta(768, 6), BYTES),
    "cardiffnlp/twitter-roberta-base-sentiment-latest": (
        "RobertaForSequenceClassification",
        roberta(768, 12, **SENTIMENT),
        BYTES,
    ),
    "almanach/camembert-base": (
        "CamembertForMaskedLM",
        roberta(768, 12, model_type="camembert", bos_token_id=5, eos_token_id=6),
        ("camembert", settings("Camembert")),
    ),
    "FacebookAI/xlm-roberta-base": ("XLMRobertaForMaskedLM", xlm(768, 12), PIECES),
    "intfloat/multilingual-e5-large": ("XLMRobertaModel", xlm(1024, 24), PIECES),
    "BAAI/bge-m3": ("XLMRobertaModel", xlm(1024, 24, max_position_embeddings=8194), PIECES),
    "Snowflake/snowflake-arctic-embed-l-v2.0": ("XLMRobertaModel", xlm(1024, 24, max_position_embeddings=8194), PIECES),
    "answerdotai/ModernBERT-base": ("ModernBertForMaskedLM", modernbert(), MODERNBERT),
    "Alibaba-NLP/gte-modernbert-base": ("ModernBertModel", modernbert(), MODERNBERT),
    "jhu-clsp/ettin-encoder-150m": ("ModernBertForMaskedLM", modernbert(local_rope_theta=160000.0), MODERNBERT),
    "jhu-clsp/mmBERT-base": ("ModernBertForMaskedLM", modernbert(local_rope_theta=160000.0), ("gemma", AS_IT_IS)),
    "EuroBERT/EuroBERT-210m": ("EuroBertForMaskedLM", EUROBERT, ("llama", AS_IT_IS)),
    "Alibaba-NLP/gte-multilingual-base": ("GteModel", GTE, PIECES),
    "nomic-ai/nomic-embed-text-v1.5": ("NomicBertModel", NOMIC, LOWER),
    "jinaai/jina-embeddings-v3": ("JinaEmbeddingsV3Model", JINA, PIECES),
    "google/electra-small-discriminator": (
        "ElectraForPreTraining",
        bert(256, 12, model_type="electra", embedding_size=128, num_attention_heads=4),
        LOWER,
    ),
    "sentence-transformers/all-mpnet-base-v2": ("", MPNET, ("uncased", settings("MPNet"))),
    "microsoft/deberta-v3-base": ("", {"model_type": "deberta-v2"}, PIECES),
    "allenai/longformer-base-4096": ("", LONGFORMER, BYTES),
    "google/bigbird-roberta-base": ("", {"model_type": "big_bird"}, PIECES),
    "tohoku-nlp/bert-base-japanese-v3": ("BertModel", bert(768, 12), ("vocab.txt", settings("BertJapanese"))),
}


def write(name: str, folder: Path) -> None:
    """Writes the folder of an encoder; without weights where config.json is enough to refuse it."""
    model, config, (kind, stated) = FIFTY[name]
    folder.mkdir(parents=True)
    tokenizer = Tokenizer.from_str(made("cased" if kind == "vocab.txt" else kind))
    if kind == "vocab.txt":
        entries = sorted(tokenizer.get_vocab().items(), key=lambda entry: entry[1])
        (folder / kind).write_text("".join(f"{entry}\n" for entry, _ in entries))
    else:
        tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(stated))
    layers = {key: LAYERS for key in ("num_hidden_layers", "n_layers") if key in config}
    config = config | layers | {"vocab_size": tokenizer.get_vocab_size()}
    if config.get("pad_token_id", 0) is not None:
        config |= {"pad_token_id": config.get("pad_token_id", 0), "architectures": [model]}
    (folder / "config.json").write_text(json.dumps(config))
    if model:
        write_weights(model, config, folder)


def write_weights(model: str, config: Config, folder: Path) -> None:
    peer = getattr(transformers, model)
    plain = {key: value for key, value in config.items() if key not in ("rope_scaling", "auto_map", "model_type")}
    with tempfile.TemporaryDirectory() as beside:
        random_model(peer, peer.config_class.from_dict(plain)).save_pretrained(beside)
        (folder / "model.safetensors").write_bytes(Path(beside, "model.safetensors").read_bytes())
