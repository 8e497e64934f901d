#!/usr/bin/env python3
"""What does a long document cost? Forward and backward of the encoders beside Longformer, BigBird and ModernBERT.

    python benchmarks/long_encoders.py --threads 2

All contenders have the same width, heads, feed-forward width and number of token-level layers (3, since all layers are
alike), random weights, no heads and no dropout. The loss is a fixed linear function of the last states of one document
without padding. `hierarchical_transformer` has a cross-segment layer in every third layer, as the paper's base model.
Poolingformer has windows of 128 in all layers and a second level of 512 in the last one. ERNIE-Sparse has two global
blocks, `block-sparse` is its attention with BigBird's global blocks and without representatives. The peers of
`transformers` are configured as they are pre-trained: Longformer with a window of 512 and no global token, BigBird
block sparse with blocks of 64 and 3 random ones, ModernBERT with one global layer in three and a feed-forward width of
1,152; Ettin's encoder of 150M has the same layers. LSG (`pip install --no-deps lsg-converter`) is its local attention
with blocks of 128 in our layers, because its models do not work with transformers 5. The documents of a padded batch
have `shares` of the length. bfloat16 on a GPU, fp32 on the CPU. `amp`: under autocast to bf16, as `--amp` on a CPU.
"""

import importlib.util
import runpy
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from harness import Facts, Job, Setting, dtype, run, where
from peers import PAD, model_of, parameters_of
from torch import Tensor, nn

from hat_fairseq.modules.attention import AttentionSizes, HeadProjections
from hat_fairseq.modules.batch_layout import BatchLayout
from hat_fairseq.networks.config import ATTENTIONS, Attention

HIERARCHICAL = "hierarchical_transformer"
LINEAR = [HIERARCHICAL, "poolingformer", "ernie_sparse", "block-sparse", "lsg"]
IN_FP32 = (*LINEAR, "hat_roberta", "full attention", "longformer", "bigbird", "modernbert")
AMP = ", amp"
SIZES = {"layers": 3, "layout": "S|S|SD", "width": 768, "heads": 12, "vocabulary": 50265, "positions": 16384}
LAYOUT = {"segment": 128, "sentence": 32}  # tokens of a segment, and between two <s>, which only hat_roberta sees
FEW = [HIERARCHICAL, "poolingformer", "ernie_sparse", "modernbert"]
IN_BOTH = [*FEW, "full attention"]
CONTENDERS = (*IN_FP32, *(name + AMP for name in IN_BOTH))


def setting(name: str, length: int, shares: Sequence[float] = (1,), contenders: Sequence[str] = FEW) -> Setting:
    """A setting of `harness.py`; `length`: of the longest document, `shares` of it that each document has."""
    return {"name": name, "length": length, "shares": shares, "contenders": contenders, **SIZES, **LAYOUT}


SETTINGS = [
    setting("{length:,} tokens", 1024, contenders=IN_FP32),
    setting("{length:,} tokens", 4096, contenders=IN_FP32),
    setting("{length:,} tokens", 8192, contenders=[*LINEAR, "bigbird", "modernbert"]),
    setting("{length:,} tokens", 16384, contenders=LINEAR),
    setting("4 documents of {length:,} tokens", 4096, [1] * 4),
    setting("4 documents, the longest of {length:,} tokens", 4096, [1, 0.75, 0.5, 0.25]),
    setting("{length:,} tokens, in fp32 and with autocast", 4096, contenders=[*IN_BOTH, *(n + AMP for n in IN_BOTH)]),
]


def build(name: str, setting: Setting) -> Job:
    """One forward and backward."""
    model, states = model_and_states(name.removesuffix(AMP), Namespace(**setting))
    model.to(where(), dtype()).train()
    lengths = torch.tensor([int(share * setting["length"]) for share in setting["shares"]])
    shape = (len(lengths), setting["length"], setting["width"])
    tokens = torch.randint(4, setting["vocabulary"] - 1, shape[:2], device=where())
    tokens[:, :: setting["sentence"]] = 0
    real = torch.arange(setting["length"]) < lengths[:, None]
    tokens.masked_fill_(~real.to(where()), PAD)
    weights = torch.randn(shape, device=where(), dtype=dtype()) * tokens.ne(PAD).unsqueeze(-1)
    last: dict[str, Tensor] = {}

    def step() -> Facts:
        model.zero_grad(set_to_none=True)
        with torch.autocast(where(), torch.bfloat16, enabled=name.endswith(AMP)):
            out = states(tokens)
        (out * weights).sum().backward()
        last["states"] = out.detach()
        return {"tokens": int(lengths.sum())}

    tables = sum(m.weight.numel() for m in model.modules() if isinstance(m, nn.Embedding))

    def finish() -> Facts:
        states = last["states"]
        gradients = [parameter.grad.norm() for parameter in model.parameters() if parameter.grad is not None]
        facts = {"magnitude": float(states.abs().mean()), "gradient": float(torch.stack(gradients).norm())}
        return {"states": list(states.shape), "finite": bool(states.isfinite().all()), **facts}

    return Job(step, {"parameters": parameters_of(model), "tables": tables}, finish)


def check(setting: Setting, ends: dict[str, Facts]) -> list[str]:
    """The same states from all; the same weights where the layers are the same."""
    shape = [len(setting["shares"]), setting["length"], setting["width"]]
    if wrong := [name for name, end in ends.items() if end["states"] != shape or not end["finite"]]:
        raise SystemExit(f"{setting['name']}: {', '.join(wrong)} did not compute finite states of {shape}")
    layers = {name: end["parameters"] - end["tables"] for name, end in ends.items()}
    verified = ["finite states of the same shape from all"]
    if {"full attention", "bigbird"} <= layers.keys():
        if layers["full attention"] != layers["bigbird"]:
            raise SystemExit(f"{setting['name']}: full attention and BigBird differ in their layers: {layers}")
        verified.append("as many parameters in the layers of BigBird and full attention")
    return verified


def model_and_states(name: str, args: Namespace) -> tuple[nn.Module, Callable[[Tensor], Tensor]]:
    """A contender, and the function from (B, T) token ids to its (B, T, C) last states."""
    if name not in ("longformer", "bigbird", "modernbert"):
        own = own_model(name, args)
        return own, lambda tokens: own(src_tokens=tokens, features_only=True)[0]
    model = peer(name, args)

    def states(tokens: Tensor) -> Tensor:
        mask = tokens.ne(PAD).long() if bool(tokens.eq(PAD).any()) else None  # None is faster
        return model(input_ids=tokens, attention_mask=mask).last_hidden_state

    return model, states


def own_model(name: str, args: Namespace) -> nn.Module:
    """A model of this package without its masked-LM head."""
    arch = {HIERARCHICAL: HIERARCHICAL, "ernie_sparse": "ernie_sparse_base"}.get(name, "hat_roberta_base")
    flags: dict[str, Any] = {"no_hierarchy": name not in ("hat_roberta", "ernie_sparse")}
    if name in ("block-sparse", "lsg"):
        flags["encoder_attention"] = name
    elif name == "poolingformer":
        flags |= {"encoder_attention": "pooling", "encoder_attention_layers": str(args.layers - 1)}
    elif name == HIERARCHICAL:
        flags |= {"layout": args.layout, "segment_length": args.segment}
        flags["max_segments"] = -(-args.positions // args.segment)
    ATTENTIONS["lsg"] = Attention((), lambda _, sizes, layer: LocalAttention(sizes))
    sizes = {"width": args.width, "heads": args.heads, "layers": args.layers, "vocabulary": args.vocabulary}
    model = model_of(arch, **sizes, dropout=0.0, attention_dropout=0.0, max_positions=args.positions, **flags)
    model.encoder.lm_head = None  # the others have none
    return model


class LocalAttention(HeadProjections):
    """LSG's local attention on our projections, for documents without padding.

    It is in the one file of LSG's package that needs torch only.
    """

    def __init__(self, sizes: AttentionSizes) -> None:
        super().__init__(sizes)
        package = importlib.util.find_spec("lsg_converter")
        if package is None or package.origin is None:
            raise SystemExit("LSG is missing: pip install --no-deps lsg-converter, or choose other --contenders")
        module = runpy.run_path(str(Path(package.origin).parent / "attention_layers/lsg_self_attention.py"))
        options = {"block_size": 128, "compute_global_attention": False, "attention_dropout_prob": 0.0}
        self.local = module["BlockLocalSelfAttention"](**options)

    def forward(self, x: Tensor, layout: BatchLayout) -> Tensor:
        return self.merge(self.local(self.heads(self.q_proj(x)), *self.keys_and_values(x)))


def peer(name: str, args: Namespace) -> nn.Module:
    """A model of `transformers` without pooler and heads."""
    import transformers

    sizes = {"hidden_size": args.width, "num_attention_heads": args.heads, "num_hidden_layers": args.layers}
    sizes |= {"intermediate_size": 4 * args.width, "vocab_size": args.vocabulary}
    sizes |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    sizes["max_position_embeddings"] = args.positions + 2
    if name == "longformer":
        config = transformers.LongformerConfig(attention_window=512, pad_token_id=1, **sizes)
        return transformers.LongformerModel(config, add_pooling_layer=False)
    if name == "modernbert":
        sizes = {key: sizes[key] for key in ("hidden_size", "num_attention_heads", "num_hidden_layers", "vocab_size")}
        config = transformers.ModernBertConfig(
            **sizes, max_position_embeddings=args.positions, attn_implementation="sdpa", pad_token_id=1
        )
        return transformers.ModernBertModel(config)
    sparse = {"attention_type": "block_sparse", "block_size": 64, "num_random_blocks": 3}
    return transformers.BigBirdModel(transformers.BigBirdConfig(**sparse, **sizes), add_pooling_layer=False)


if __name__ == "__main__":
    versions = ["transformers", "lsg-converter"]
    run(build, check, contenders=CONTENDERS, settings=SETTINGS, reference=HIERARCHICAL, versions=versions)
