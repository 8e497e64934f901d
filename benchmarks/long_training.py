#!/usr/bin/env python3
"""How much memory does a training on one long document need? Forward and backward, kept and recomputed.

    python benchmarks/long_training.py --threads 2

`hierarchical_transformer` has the sizes of MiniLM: six layers of width 384, a cross-segment layer after every third
one, segments of 128 tokens. *Windows* is `hat_roberta` of these sizes without hierarchy, with 128 tokens on either side
of each token; *two levels* has Poolingformer's second level in the last layer. `--checkpoint-activations` recomputes
groups of segments, or of the tokens of a layer. The peer is ModernBERT of `transformers` with the same sizes, one
global layer in three and its own gradient checkpointing. Weights are random, there is no dropout, and the loss is the
mean of the squared states. Memory is the peak of a process above what it holds after a document of 256 tokens, which
allocates the gradients. Kept and recomputed gradients are compared; in double precision, in tests, they are equal to
1e-10.
"""

from argparse import Namespace
from typing import Any

import torch
from harness import Facts, Job, Setting, forget_peak, peak_memory, run
from peers import model_of
from torch import Tensor, nn

NETWORK = "hierarchical_transformer"
SIZES = {"network": NETWORK, "layers": 6, "layout": "S|S|SD|S|S|SD", "width": 384, "heads": 12, "vocabulary": 30522}
SHORT, LARGEST = 256, 1e-5  # tokens; a relative difference
CONTENDERS = KEPT, RECOMPUTED, PEER = "kept", "recomputed", "ModernBERT, recomputed"
WINDOWS = {**SIZES, "network": "hat_roberta_base", "length": 16384, "rounds": 3, "contenders": [KEPT, RECOMPUTED]}
SETTINGS: list[Setting] = [
    {"name": "{length:,} tokens", "length": 4096, **SIZES},
    {"name": "{length:,} tokens", "length": 16384, "rounds": 3, "contenders": [KEPT, RECOMPUTED], **SIZES},
    {"name": "{length:,} tokens", "length": 65536, "rounds": 1, "contenders": [RECOMPUTED], **SIZES},
    *(
        {
            "name": f"{{length:,}} tokens, {name}",
            "length": 16384,
            "rounds": 3,
            "contenders": [KEPT, RECOMPUTED],
            **SIZES,
        }
        | {"network": "hat_roberta_base", "attention": attention}
        for name, attention in (("windows", "window"), ("two levels", "pooling"))
    ),
]


def build(name: str, chosen: Setting) -> Job:
    args = Namespace(**chosen)
    model: nn.Module = peer(args) if name == PEER else own(args, name == RECOMPUTED)
    model.train()
    tokens = torch.randint(5, args.vocabulary, (1, args.length), generator=torch.Generator().manual_seed(1))

    def compute(tokens: Tensor) -> float:
        model.zero_grad(set_to_none=False)
        out = model(input_ids=tokens) if name == PEER else model(src_tokens=tokens, features_only=True)
        states: Tensor = out.last_hidden_state if name == PEER else out[0]
        loss = states.float().square().mean()
        loss.backward()
        return float(loss.detach())

    compute(tokens[:, :SHORT])
    forget_peak()
    before, last = peak_memory(), dict[str, Any]()

    def step() -> Facts:
        last["loss"] = compute(tokens)
        return {"tokens": args.length}

    def finish() -> Facts:
        above = peak_memory() - before
        gradients = {key: each.grad for key, each in model.named_parameters() if each.grad is not None}
        sampled = {key: grad.flatten()[:: max(1, grad.numel() // 64)].tolist() for key, grad in gradients.items()}
        return {"bytes_above_weights": above, "_gradients": sampled, **last}

    return Job(step, {}, finish)


def own(args: Namespace, recomputed: bool) -> nn.Module:
    flags: dict[str, Any] = {"layout": args.layout, "segment_length": 128, "max_segments": args.length // 128}
    if args.network != NETWORK:
        flags = {"no_hierarchy": True, "encoder_attention": args.attention}
        if args.attention == "pooling":
            flags["encoder_attention_layers"] = str(args.layers - 1)
    model = model_of(
        args.network,
        **{"width": args.width, "heads": args.heads, "layers": args.layers, "vocabulary": args.vocabulary},
        **{"dropout": 0.0, "attention_dropout": 0.0, "max_positions": args.length},
        **{"checkpoint_activations": recomputed, **flags},
    )
    model.encoder.lm_head = None
    return model


def peer(args: Namespace) -> Any:
    from transformers import ModernBertConfig, ModernBertModel

    config = ModernBertConfig(
        vocab_size=args.vocabulary,
        hidden_size=args.width,
        intermediate_size=3 * args.width // 2,
        num_hidden_layers=args.layers,
        num_attention_heads=args.heads,
        max_position_embeddings=args.length,
        **{"pad_token_id": 1, "bos_token_id": 0, "cls_token_id": 0, "eos_token_id": 2, "sep_token_id": 2},
    )
    config._attn_implementation = "sdpa"
    model = ModernBertModel(config)
    model.activation_checkpointing_enable()
    return model


def check(chosen: Setting, ends: dict[str, Facts]) -> list[str]:
    told = [f"{name}: {end['bytes_above_weights'] / 1e9:.2f} GB above the weights" for name, end in ends.items()]
    if {KEPT, RECOMPUTED} <= ends.keys():
        whole, again = (ends[name]["_gradients"] for name in (KEPT, RECOMPUTED))
        most = max(relative(torch.tensor(again[key]), torch.tensor(whole[key])) for key in whole)
        if most > LARGEST:
            raise SystemExit(f"{chosen['name']}: gradients differ by {most:.1e}")
        told.append(f"gradients, kept and recomputed, differ by {most:.1e}")
    return told


def relative(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().max() / other.abs().max().clamp(min=1e-12))


if __name__ == "__main__":
    run(build, check, contenders=CONTENDERS, settings=SETTINGS, reference=KEPT, versions=["transformers"])
