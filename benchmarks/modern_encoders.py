#!/usr/bin/env python3
"""What does ModernBERT cost in this package and in transformers, with equal outputs?

    python benchmarks/modern_encoders.py --threads 2

Both have the same random weights with the shapes of ModernBERT-base: 22 layers of width 768, of which 15 attend to 64
tokens on either side. One document without padding, in inference. `transformers` runs with its SDPA attention; in bf16
its weights are bf16. `hat` is `hat_roberta` as `hat import` makes it, with `--precision fp32` or `bf16`. Memory is the
peak of a process above what it holds with its model before the first document. The states of every 64th token are
compared. 32,768 tokens are four times as many as ModernBERT was trained for, and time and memory are what count there;
transformers does not take part: by its time for 8,192 tokens a document would take it over ten minutes.
"""

from typing import Any

import torch
from harness import Facts, Job, Setting, dtype, forget_peak, peak_memory, run, where
from torch import Tensor, nn

from hat_fairseq.kernels import set_precision
from hat_fairseq.networks.encoder import Vocabulary
from hat_fairseq.networks.roberta import HatRobertaConfig, HatRobertaEncoder
from hat_fairseq.weights import rotary
from hat_fairseq.weights.tables import by_table

PAD, EVERY = 1, 64
IN_FP32, IN_BF16 = ("transformers", "hat"), ("transformers bf16", "hat bf16")
SIZES = {"layers": 22, "width": 768, "ffn": 1152, "heads": 12, "vocabulary": 50368, "window": 128}
SETTINGS: list[Setting] = [
    {"name": "{length} tokens", "length": 512, **SIZES},
    {"name": "{length} tokens", "length": 2048, **SIZES},
    {"name": "{length} tokens", "length": 8192, "rounds": 3, **SIZES},
    {"name": "{length} tokens", "length": 32768, "rounds": 1, "contenders": ["hat", "hat bf16"], **SIZES},
]
LARGEST = {"fp32": 1e-4, "bf16": 0.1}  # relative differences


def peer(chosen: Setting) -> Any:
    """transformers' ModernBERT with random weights, the same in every process."""
    from transformers import ModernBertConfig, ModernBertModel

    config = ModernBertConfig(
        vocab_size=chosen["vocabulary"],
        hidden_size=chosen["width"],
        intermediate_size=chosen["ffn"],
        num_hidden_layers=chosen["layers"],
        num_attention_heads=chosen["heads"],
        local_attention=chosen["window"],
        max_position_embeddings=chosen["length"],
        **{"pad_token_id": PAD, "bos_token_id": 0, "cls_token_id": 0, "eos_token_id": 2, "sep_token_id": 2},
    )
    config._attn_implementation = "sdpa"
    torch.manual_seed(1)
    return ModernBertModel(config).eval()


def converted(model: Any) -> HatRobertaEncoder:
    """The encoder of `hat_roberta` with the weights of transformers' ModernBERT."""
    settings = rotary.modernbert(model.config.to_dict())
    known = {name: value for name, value in settings.items() if name in HatRobertaConfig.__dataclass_fields__}
    config = HatRobertaConfig(**known, no_hierarchy=True, dropout=0.0)
    config.check()
    encoder = HatRobertaEncoder(config, Vocabulary(model.config.vocab_size)).eval()
    named = by_table(model.state_dict(), rotary.MODERNBERT, [])
    encoder.load_state_dict({name.removeprefix(rotary.ENCODER): tensor for name, (_, tensor) in named.items()})
    return encoder


def build(name: str, chosen: Setting) -> Job:
    model: nn.Module = peer(chosen)
    kind, _, precision = name.partition(" ")
    if kind == "hat":
        model = converted(model)
        set_precision(model, precision or "fp32")
    elif precision or dtype() is torch.bfloat16:
        model = model.to(torch.bfloat16)
    model = model.to(where()) if where() != "cpu" else model
    tokens = torch.randint(4, chosen["vocabulary"], (1, chosen["length"]), generator=torch.Generator().manual_seed(2))
    tokens = tokens.to(where())

    @torch.inference_mode()
    def states() -> Tensor:
        if kind == "hat":
            return model(tokens).tokens
        return model(input_ids=tokens, attention_mask=torch.ones_like(tokens)).last_hidden_state

    forget_peak()
    before, last = peak_memory(), dict[str, Any]()

    def step() -> Facts:
        last["_states"] = states()[0, ::EVERY].clone()
        return {"tokens": chosen["length"]}

    def finish() -> Facts:
        above = peak_memory() - before
        return {"bytes_above_weights": above, "_states": last["_states"].float().cpu().tolist()}

    return Job(step, {}, finish)


def check(chosen: Setting, ends: dict[str, Facts]) -> list[str]:
    reference = next(iter(ends))  # transformers, or the first contender where it does not take part
    expected, told = torch.tensor(ends[reference]["_states"]), []
    for name, end in ends.items():
        difference = float((torch.tensor(end["_states"]) - expected).abs().max() / expected.abs().max())
        if difference > LARGEST["bf16" if "bf16" in name else "fp32"]:
            raise SystemExit(f"{chosen['name']}: the states of {name} differ by {difference:.1e}")
        memory = end["bytes_above_weights"] / 1e9
        told.append(f"{name}: {memory:.2f} GB above the weights, states differ by {difference:.1e}")
    return told


if __name__ == "__main__":
    run(
        build,
        check,
        contenders=IN_FP32 + IN_BF16,
        settings=SETTINGS,
        reference="transformers",
        versions=["transformers"],
    )
