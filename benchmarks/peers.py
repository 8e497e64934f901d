"""The models that benchmarks compare: ours, stock fairseq, transformers' BART and CTranslate2, with equal weights.

`model_of` builds any architecture, of this package or of fairseq, with random weights. The baseline without hierarchy
of `hat_bart_*` (`no_hierarchy=True`) has the parameters of BART: `copy_weights` puts them into a model of fairseq;
`transformers_bart` and `save_ctranslate2` build the same network for the other two.

Freshly initialized models repeat one token: the output table is the input table, and the last states are mostly the
last input. `decisive` changes the weights so that hypotheses differ, depend on the source and never end; benchmarks fix
the number of generated tokens.
"""

from argparse import Namespace
from pathlib import Path
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from torch import Tensor, nn

from hat_fairseq.register import register

register()  # registers the architectures

BOS, PAD, EOS, UNK = 0, 1, 2, 3
FIRST_WORD = 4
SENTENCE = 32  # tokens between two <s> of a source; only hierarchical models see them
# The flags that make fairseq's `transformer` the network of BART; its `bart_base` needs none.
BART = {"encoder_learned_pos": True, "decoder_learned_pos": True, "layernorm_embedding": True} | {
    "no_scale_embedding": True,
    "share_all_embeddings": True,
    "activation_fn": "gelu",
}
_FINGERPRINT = "dictionary_fingerprint"


def dictionary(vocabulary: int) -> Dictionary:
    """A dictionary of `vocabulary` symbols, the four special ones included."""
    result = Dictionary()
    for number in range(vocabulary - len(result)):
        result.add_symbol(f"w{number}")
    return result


def model_of(
    arch: str,
    *,
    width: int = 768,
    heads: int = 12,
    layers: int = 2,
    vocabulary: int = 50265,
    seed: int = 1,
    **flags: Any,
) -> Any:
    """A model of `arch` (fairseq's or ours) with `layers` layers on each side, in training mode.

    `flags` are those of fairseq-train: `no_hierarchy=True`, `dropout=0.1`, `max_source_positions=3072`, and so on.
    """
    sizes = {"embed_dim": width, "ffn_embed_dim": 4 * width, "attention_heads": heads, "layers": layers}
    sides = {f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in sizes.items()}
    values = {name: value for name, value in (sides | flags).items() if value is not False}  # False: no flag
    args = Namespace(arch=arch, task="translation", **values)
    ARCH_CONFIG_REGISTRY[arch](args)
    symbols = dictionary(vocabulary)
    task = Namespace(source_dictionary=symbols, target_dictionary=symbols, role_dictionary=None)
    torch.manual_seed(seed)
    return ARCH_MODEL_REGISTRY[arch].build_model(args, task)


def parameters_of(model: nn.Module) -> int:
    """The number of a model's parameters."""
    return sum(parameter.numel() for parameter in model.parameters())


def copy_weights(plain: nn.Module, stock: nn.Module) -> Any:
    """Puts the weights of a baseline into fairseq's model; returns it. ValueError: a parameter has no counterpart."""
    weights = {name: tensor for name, tensor in plain.state_dict().items() if _FINGERPRINT not in name}
    targets = {name: tensor for name, tensor in stock.state_dict().items() if tensor.dim() > 1 or "layer" in name}
    different = sorted(weights.keys() ^ targets.keys())
    different += [name for name in weights.keys() & targets.keys() if weights[name].shape != targets[name].shape]
    if different:
        raise ValueError(f"the two models differ in {', '.join(different)}")
    with torch.no_grad():
        for name, tensor in weights.items():
            targets[name].copy_(tensor)
    return stock


@torch.no_grad()
def decisive(model: Any, scale: float = 3.0) -> Any:
    """Changes random weights in place so that beam search has real choices (see above), and returns the model.

    The decoder's feed-forward networks dominate the residual, its attention is sharp, positions matter as much as
    tokens, and `scale` is the standard deviation of the logits. `</s>` and padding have logit 0, so no hypothesis ends
    by itself.
    """
    for name, parameter in model.decoder.layers.named_parameters():
        if name.endswith("weight") and parameter.dim() == 2:
            gain = 3.0 if "fc" in name else 2.0 if "q_proj" in name or "k_proj" in name else 1.0
            nn.init.normal_(parameter, std=gain * parameter.size(1) ** -0.5)
    table = model.decoder.output_projection.weight
    for part in (table, model.decoder.embed_positions.weight, model.encoder.embed_positions.weight):
        nn.init.normal_(part, std=scale * table.size(1) ** -0.5)
    table[[EOS, PAD]] = 0
    return model


def documents(batch: int, length: int, vocabulary: int = 50265, seed: int = 0) -> Tensor:
    """(batch, length) random token ids, nothing padded, `<s>` before every sentence and `</s>` at the end."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(FIRST_WORD, vocabulary, (batch, length), generator=generator)
    tokens[:, ::SENTENCE] = BOS
    tokens[:, -1] = EOS
    return tokens


def transformers_bart(plain: Any) -> Any:
    """`BartForConditionalGeneration` with the weights of a baseline without hierarchy, in eval mode, with SDPA."""
    from transformers import BartConfig, BartForConditionalGeneration

    args = plain.config
    positions = plain.encoder.max_positions()
    assert positions == plain.decoder.max_positions()  # transformers' BART has one number for both
    sides = {
        f"{side}_{name.replace('ffn_embed', 'ffn')}": getattr(args, f"{side}_{name}")
        for side in ("encoder", "decoder")
        for name in ("layers", "ffn_embed_dim", "attention_heads")
    }
    config = BartConfig(
        vocab_size=len(plain.decoder.dictionary),
        d_model=args.encoder_embed_dim,
        max_position_embeddings=positions,
        activation_function=str(args.activation_fn),
        forced_eos_token_id=None,
        **sides,
    )
    config._attn_implementation = "sdpa"
    model = BartForConditionalGeneration(config).eval()
    weights = {f"model.{n}": tensor for n, tensor in plain.state_dict().items() if _FINGERPRINT not in n}
    weights["lm_head.weight"] = weights.pop("model.decoder.output_projection.weight")
    weights["model.shared.weight"] = weights["lm_head.weight"]
    weights["final_logits_bias"] = torch.zeros_like(model.final_logits_bias)
    model.load_state_dict(weights)
    model.tie_weights()
    return model


def long_document_model(name: str, width: int, heads: int, layers: int, vocabulary: int, positions: int) -> Any:
    """A model of transformers for long documents with random weights, in eval mode; T5Gemma 2 has its own sizes."""
    import transformers

    if name == "led":
        sides = {f"{side}_layers": layers for side in ("encoder", "decoder")}
        sides |= {f"{side}_attention_heads": heads for side in ("encoder", "decoder")}
        sides |= {f"{side}_ffn_dim": 4 * width for side in ("encoder", "decoder")}
        sides |= {f"max_{side}_position_embeddings": positions for side in ("encoder", "decoder")}
        config = transformers.LEDConfig(vocab_size=vocabulary, d_model=width, attention_window=1024, **sides)
        return transformers.LEDForConditionalGeneration(config).eval()
    if name == "longt5":
        sizes = {"d_model": width, "num_heads": heads, "num_layers": layers, "d_ff": 2048, "d_kv": width // heads}
        kinds = {"encoder_attention_type": "transient-global", "feed_forward_proj": "gated-gelu"}
        config = transformers.LongT5Config(vocab_size=vocabulary, **sizes, **kinds)
        return transformers.LongT5ForConditionalGeneration(config).eval()
    text = {"hidden_size": 640, "intermediate_size": 2048, "num_hidden_layers": 18, "num_attention_heads": 4}
    text |= {"num_key_value_heads": 1, "head_dim": 256, "sliding_window": 512, "vocab_size": 262_144}
    pictures = {"model_type": "siglip_vision_model", "hidden_size": 16, "intermediate_size": 16}
    pictures |= {"num_hidden_layers": 1, "num_attention_heads": 1, "image_size": 56, "patch_size": 14}
    encoder = {"text_config": text, "vision_config": pictures}  # which is not used
    return transformers.T5Gemma2ForConditionalGeneration(
        transformers.T5Gemma2Config(encoder=encoder, decoder=text)
    ).eval()


def save_ctranslate2(stock: Any, folder: Path, quantization: str = "float32") -> str:
    """Writes a model of fairseq for CTranslate2 with the functions of its converter, and returns the folder's name."""
    from ctranslate2.converters import fairseq as converter

    class Stock(converter.Converter):
        def _load(self) -> Any:
            args = stock.args
            spec = converter._get_model_spec(args)
            converter.set_transformer_encoder(spec.encoder, stock.encoder)
            converter.set_transformer_decoder(spec.decoder, stock.decoder)
            spec.register_source_vocabulary(converter._get_vocab(stock.encoder.dictionary))
            spec.register_target_vocabulary(converter._get_vocab(stock.decoder.dictionary))
            spec.config.decoder_start_token = spec.config.eos_token
            spec.config.add_source_eos = False  # sources already end in </s>
            return spec

    with torch.no_grad():
        for parameter in stock.parameters():
            parameter.requires_grad_(False)  # the converter calls .numpy()
        return Stock().convert(str(folder), quantization=quantization, force=True)
