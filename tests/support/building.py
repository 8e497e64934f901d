"""Small models built the way fairseq builds them: flags, architecture function, build_model."""

from argparse import ArgumentParser, Namespace
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from torch import Tensor

from hat_fairseq.register import register

register()  # registers the architectures

BOS, PAD, EOS = 0, 1, 2
TINY = (
    "--encoder-embed-dim 24 --decoder-embed-dim 24 --encoder-ffn-embed-dim 40 --decoder-ffn-embed-dim 40 "
    "--encoder-layers 2 --decoder-layers 2 --encoder-attention-heads 4 --decoder-attention-heads 4 --dropout 0"
)

TINY_ENCODER = (
    "--encoder-embed-dim 24 --encoder-ffn-embed-dim 40 --encoder-layers 2 --encoder-attention-heads 4 --dropout 0 "
    "--attention-dropout 0"
)
SMALL_HIERARCHICAL = (
    "--encoder-embed-dim 24 --encoder-ffn-embed-dim 40 --encoder-attention-heads 4 --dropout 0 --attention-dropout 0 "
    "--pooler-dropout 0 --segment-length 6 --max-segments 5 --layout "
)


class Vocabulary:
    """All that a model asks of a task."""

    def __init__(self, size: int = 60, roles: int = 0, mask: bool = False) -> None:
        self.source_dictionary = self.target_dictionary = dictionary([f"w{i}" for i in range(size - 4 - mask)], mask)
        self.role_dictionary = dictionary([f"role{i}" for i in range(roles)]) if roles else None


def dictionary(words: list[str], mask: bool = False) -> Dictionary:
    result = Dictionary()
    for word in [*words, *(["<mask>"] if mask else [])]:
        result.add_symbol(word)
    return result


def build(arch: str, flags: str = TINY, task: Any = None, seed: int = 0, **args: Any) -> Any:
    """The model of `arch` with fairseq-train `flags`."""
    torch.manual_seed(seed)
    model_class = ARCH_MODEL_REGISTRY[arch]
    parser = ArgumentParser(argument_default=None)
    model_class.add_args(parser)
    known = {action.dest for action in parser._actions}
    parsed = {k: v for k, v in vars(parser.parse_args(flags.split())).items() if v is not None and k in known}
    namespace = Namespace(arch=arch, **({"max_source_positions": 64, "max_target_positions": 32} | parsed | args))
    for name in [name for name, value in vars(namespace).items() if value is False]:
        delattr(namespace, name)  # store_true flags that were not given: left to the architecture
    ARCH_CONFIG_REGISTRY[arch](namespace)
    return model_class.build_model(namespace, task or Vocabulary())


def small_hierarchical(layout: str = "S|SD", flags: str = "") -> Any:
    """A `hierarchical_transformer` with weights that tell its parts from each other."""
    model = build("hierarchical_transformer", f"{SMALL_HIERARCHICAL}{layout} {flags}")
    for name, parameter in model.named_parameters():  # at 1, 0 and 0.02 too much would look alike
        if "layer_norm" in name or "layernorm" in name:
            torch.nn.init.normal_(parameter, 0.5, 0.5)
        elif parameter.dim() == 2:
            torch.nn.init.normal_(parameter, std=0.3)
    return model


def documents(lengths: list[int], sentence: int = 4, vocabulary: int = 60, seed: int = 0) -> Tensor:
    """(B, T) random documents, a BOS every `sentence` tokens, `</s>` at the end, padded on the right."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.full((len(lengths), max(lengths)), PAD)
    for row, length in zip(rows, lengths, strict=True):
        row[:length] = torch.randint(4, vocabulary, (length,), generator=generator)
        row[:length:sentence] = BOS
        row[length - 1] = EOS
    return rows


def targets(batch: int, length: int, vocabulary: int = 60, seed: int = 1) -> Tensor:
    """(B, T) shifted targets: `</s>` first."""
    rows = torch.randint(4, vocabulary, (batch, length), generator=torch.Generator().manual_seed(seed))
    rows[:, 0] = EOS
    return rows


def released_roberta(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The state of a RoBERTa of fairseq in the layout of `roberta.base/model.pt` of 2019."""
    released = {"decoder.sentence_encoder.version": torch.tensor([3.0])}
    for name, tensor in state.items():
        old = name.replace("encoder.", "decoder.", 1).replace("layernorm_embedding", "emb_layer_norm")
        if "q_proj" in name:
            parts = [state[name.replace("q_proj", f"{part}_proj")] for part in "qkv"]
            released[old.replace("q_proj.", "in_proj_")] = torch.cat(parts)
        elif "k_proj" not in name and "v_proj" not in name:
            released[old] = tensor
    return released
