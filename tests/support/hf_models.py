"""Small models of fairseq, and the same ones of transformers with their tensors."""

from dataclasses import asdict
from typing import Any

import torch
from building import PAD, TINY, TINY_ENCODER, Vocabulary, build
from torch import Tensor, nn

POSITIONS = "--max-positions 64"
WRITERS = {  # architecture, flags, roles
    "roles": ("hat_transformer", "--share-all-embeddings", 5),
    "tables": ("hat_transformer", "--share-decoder-input-output-embed --decoder-kv-heads 2", 0),
    "bart": ("hat_bart_base", "--encoder-normalize-before --decoder-normalize-before --decoder-ffn-embed-dim 2800", 0),
    "pooling": (
        "poolingformer_bart_base",
        "--encoder-attention-layers 1 --attention-window 4 --pooling-window 8 --key-pooling mean-ldconv",
        0,
    ),
}
ENCODERS = {
    "hat": ("hat_roberta_base", f"{POSITIONS} --sentence-queries bos"),
    "means": ("hat_roberta_base", f"{POSITIONS} --span-pooling mean"),
    "window": (
        "hat_roberta_base",
        f"{POSITIONS} --encoder-attention window --attention-window 4 --global-tokens first",
    ),
    "ernie": ("ernie_sparse_tiny", f"{POSITIONS} --sparse-block 4 --sparse-first 1 --sparse-last 0"),
    "bigbird": ("ernie_sparse_tiny", f"{POSITIONS} --sparse-block 4 --no-hierarchy --untie-weights-roberta"),
    "segments": ("hierarchical_transformer_tiny", "--layout S|SD --segment-length 8 --segment-by marker"),
    "segment means": (
        "hierarchical_transformer_tiny",
        "--layout S|SD --segment-length 8 --segment-by marker --span-pooling mean",
    ),
}
HEADS = {"text": "document", "part": "segment", "word": "token", "place": "paragraph", "all": "paragraphs"}


def shaken(model: nn.Module) -> Any:
    """The model with noise on every parameter, so that any two that are swapped make a difference."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.2)
    return model.eval()


def config_of(model: Any, network: str, **more: Any) -> Any:
    """The config that `hat export` writes of a model with the dictionary of `building`."""
    from hat_fairseq.hf import HatConfig

    basic = bool, int, float, type(None)
    settings = {name: v if isinstance(v, basic) else str(v) for name, v in asdict(model.config).items()}
    return HatConfig(network, settings, vocab_size=60, **more)


def filled(model: Any, peer: Any) -> Any:
    """The model of transformers with the tensors of fairseq's, all of which it must have."""
    peer.load_state_dict({n: t for n, t in model.state_dict().items() if not n.endswith("_fingerprint")})
    return peer.eval()


def writer(name: str) -> tuple[Any, Any]:
    """An encoder-decoder of fairseq, and of transformers."""
    from hat_fairseq.hf import HatForConditionalGeneration

    arch, flags, roles = WRITERS[name]
    model = shaken(build(arch, f"{TINY} {flags}", Vocabulary(roles=roles)))
    network = "hat_bart" if "bart" in arch else "hat_transformer"
    sizes = {"max_source_positions": 64, "max_target_positions": 32, "num_roles": roles and roles + 4}
    return model, filled(model, HatForConditionalGeneration(config_of(model, network, **sizes)))


def encoder(name: str, heads: dict[str, str]) -> tuple[Any, Any]:
    """An encoder of fairseq with these heads and one for pairs, and the config of its peer."""
    arch, flags = ENCODERS[name]
    by_layout = "segment" in name
    sizes = TINY_ENCODER.replace("--encoder-layers 2", "") if by_layout else TINY_ENCODER
    model = build(arch, f"{sizes} {flags}")
    numbers = {}
    for head, level in (heads if by_layout or not heads else heads | {"two": "pair"}).items():
        model.register_classification_head(head, 3, 20, level)
        numbers[head] = {"level": level, "classes": 3, "inner_dim": 20}
    return shaken(model), config_of(model, arch.removesuffix("_tiny").removesuffix("_base"), heads=numbers)


def roles_of(model: Any, ids: Tensor, name: str = "role_ids") -> dict[str, Tensor]:
    """Roles that depend on the tokens, for a model that has them."""
    return {} if model.encoder.embed_segments is None else {name: ids.clamp(max=8)}


def variants(tokens: Tensor) -> list[dict[str, Tensor]]:
    """A batch, with ids under the mask that do not count, and padded on the left."""
    mask, left = tokens.ne(PAD), torch.full_like(tokens, PAD)
    for row, new in zip(tokens, left, strict=True):
        real = row[row.ne(PAD)]
        new[-len(real) :] = real
    return [{"input_ids": tokens}, {"input_ids": tokens.where(mask, 7), "attention_mask": mask}, {"input_ids": left}]
