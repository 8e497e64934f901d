"""Small models of transformers with the options of published encoders, as folders that `hat import` reads."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import save_file
from tokenizers import Tokenizer
from tokenizers_on_the_spot import write_modern
from torch import Tensor

SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 4, "num_attention_heads": 4}
OF_ROBERTA = {"type_vocab_size": 1, "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}


@dataclass(frozen=True)
class Published:
    """What a published config.json says beside sizes: the class, the options and the kind of vocabulary."""

    family: str
    model: str
    vocabulary: str
    options: dict[str, Any] = field(default_factory=dict)


def modernbert(**options: Any) -> Published:
    vocabulary = options.pop("vocabulary", "ModernBERT")
    # a window of 16, so that short rows are longer
    return Published(
        "modernbert",
        "ModernBert",
        vocabulary,
        {"local_attention": 16, "max_position_embeddings": 300, "pad_token_id": 3} | options,
    )


def theta(global_base: float, local_base: float) -> dict[str, Any]:
    bases = {"full_attention": global_base, "sliding_attention": local_base}
    return {"rope_parameters": {kind: {"rope_type": "default", "rope_theta": base} for kind, base in bases.items()}}


LLAMA = {"rms_norm_eps": 1e-5, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
EUROBERT = LLAMA | {"mask_token_id": 2, "rope_parameters": {"rope_type": "default", "rope_theta": 250000.0}}
LINEAR = {"rope_type": "linear", "rope_theta": 160000.0, "factor": 8 ** (2 / 8)}
PUBLISHED = {
    "ModernBERT-base": modernbert(**theta(160000.0, 10000.0)),
    "ModernBERT-large": modernbert(**theta(160000.0, 10000.0), num_hidden_layers=5),
    "ModernBERT, 128 tokens": modernbert(local_attention=128, max_position_embeddings=400),
    "mmBERT-base": modernbert(**theta(160000.0, 160000.0), vocabulary="mmBERT", pad_token_id=0),
    "Ettin-17m": modernbert(**theta(160000.0, 160000.0), num_hidden_layers=7),
    "gte-modernbert-base": modernbert(**theta(160000.0, 10000.0), global_attn_every_n_layers=3),
    "granite-embedding-english-r2": modernbert(**theta(80000.0, 10000.0)),
    "granite-embedding-small-r2": modernbert(hidden_activation="silu", classifier_activation="silu"),
    "BioClinical-ModernBERT": modernbert(num_hidden_layers=3),
    "EuroBERT-210m": Published("eurobert", "EuroBert", "EuroBERT", EUROBERT),
    "EuroBERT-610m": Published("eurobert", "EuroBert", "EuroBERT", EUROBERT | {"num_key_value_heads": 2}),
    "EuroBERT-2.1B, tied": Published(
        "eurobert", "EuroBert", "EuroBERT", EUROBERT | {"num_key_value_heads": 1, "tie_word_embeddings": True}
    ),
    "UltraBERT-150M": Published("ultrabert", "Ultrabert", "EuroBERT", LLAMA | {"sliding_window": 6}),
    "nomic-embed-text-v1.5": Published("nomic_bert", "NomicBert", "uncased WordPiece", {"type_vocab_size": 2}),
    "gte-multilingual-base": Published("gte", "Gte", "XLM-RoBERTa", {"rope_parameters": LINEAR, "type_vocab_size": 1}),
    "gte-base-en-v1.5": Published("gte", "Gte", "uncased WordPiece", {"type_vocab_size": 0}),
    "jina-embeddings-v3": Published("jina_v3", "JinaEmbeddingsV3", "XLM-RoBERTa", OF_ROBERTA),
    "bge-m3": Published("xlm_roberta", "XLMRoberta", "XLM-RoBERTa", OF_ROBERTA | {"layer_norm_eps": 1e-5}),
    "multilingual-e5-small": Published(
        "xlm_roberta", "XLMRoberta", "XLM-RoBERTa", OF_ROBERTA | {"layer_norm_eps": 1e-12}
    ),
    "camembert-base": Published(
        "camembert",
        "Camembert",
        "CamemBERT",
        OF_ROBERTA | {"bos_token_id": 5, "eos_token_id": 6, "layer_norm_eps": 1e-5},
    ),
    "distilbert-base": Published("distilbert", "DistilBert", "uncased WordPiece"),
    "electra-base-discriminator": Published("electra", "Electra", "uncased WordPiece", {"embedding_size": 32}),
    "electra-base-generator": Published("electra", "Electra", "uncased WordPiece", {"embedding_size": 32}),
    "bge-base-en-v1.5": Published("bert", "Bert", "uncased WordPiece"),
    "arctic-embed-m": Published("bert", "Bert", "cased WordPiece", {"layer_norm_eps": 1e-12}),
}
OF_DISTILBERT = {"hidden_size": "dim", "intermediate_size": "hidden_dim", "num_hidden_layers": "n_layers"}
OF_DISTILBERT |= {"num_attention_heads": "n_heads"}


def config_of(published: Published, rows: int) -> Any:
    """The configuration of transformers' class, at a small width."""
    options = {"max_position_embeddings": 120} | SIZES | published.options
    if published.family == "distilbert":
        options = {OF_DISTILBERT.get(name, name): value for name, value in options.items()}
    return getattr(transformers, f"{published.model}Config")(vocab_size=rows, **options)


def random_model(model_class: Any, config: Any) -> Any:
    """A model in which every part matters: norms are near 1, maps keep the size of what they map, all biases differ."""
    torch.manual_seed(3)
    config._attn_implementation = "sdpa"
    model = model_class(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 2:
                parameter.copy_(torch.randn_like(parameter) * parameter.size(1) ** -0.5)
            else:
                is_scale = "orm" in name and name.endswith("weight")
                parameter.copy_(is_scale + 0.2 * torch.randn_like(parameter))
    return model


def write(name: str, folder: Path, purpose: str = "ForMaskedLM", spare_rows: int = 3) -> tuple[Any, Tokenizer]:
    """Writes a folder as `save_pretrained` does, and returns the model and its tokenizer."""
    published = PUBLISHED[name]
    tokenizer = write_modern(folder, published.vocabulary)
    config = config_of(published, tokenizer.get_vocab_size() + spare_rows)
    purpose = "ForPreTraining" if "discriminator" in name else purpose
    model = random_model(getattr(transformers, published.model + purpose), config)
    model.save_pretrained(folder)
    return model, tokenizer


def write_with_names_of_the_class(model: Any, folder: Path) -> None:
    """Replaces the weights by those under the names of transformers' class, which `save_pretrained` may not use."""
    shared: dict[int, str] = {}
    state = {
        name: tensor
        for name, tensor in model.state_dict().items()
        if shared.setdefault(tensor.data_ptr(), name) == name
    }
    save_file({name: tensor.contiguous() for name, tensor in state.items()}, folder / "model.safetensors")


def change(folder: Path, **settings: Any) -> None:
    """Changes config.json; None removes a key."""
    path = folder / "config.json"
    config = json.loads(path.read_text()) | settings
    path.write_text(json.dumps({name: value for name, value in config.items() if value is not None}))


def core_of(model: Any) -> Any:
    """The encoder of transformers' model."""
    return getattr(model, model.base_model_prefix, model)


def ids_of(tokenizer: Tokenizer, text: str, longest: int) -> list[int]:
    """What transformers gives for a text, the ends included."""
    ids = tokenizer.encode(text).ids
    return [*ids[: longest - 1], ids[-1]] if len(ids) > longest else ids


def padded(rows: list[list[int]], pad: int) -> Tensor:
    return torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=pad)
