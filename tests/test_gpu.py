"""Models and beam search compute on a GPU what they compute on the CPU; without a GPU, in fp32 what they do in bf16.

The reference is fp32 on the CPU with weights that are rounded to the type of the check, so that only the rounding of
activations remains. Distances are ||a - b|| / ||b||, of gradients over all parameters together.
"""

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.sequence_generator import SequenceGenerator
from fairseq.utils import apply_to_sample
from helpers import block_texts_alone
from peers import BOS, EOS, PAD, decisive, model_of
from torch import Tensor, nn
from training import CHUNKED, criterion_of, relative, sample

from hat_fairseq.generation.shared_memory import SharedMemoryGenerator

NO_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU")
DEVICES = ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, NO_GPU])]
SIZES = {"width": 64, "heads": 4, "layers": 2, "vocabulary": 500, "max_positions": 512}
SIZES |= {f"{part}dropout": 0.0 for part in ("", "attention_", "activation_")}
SIZES |= {"max_source_positions": 512, "max_target_positions": 128}
SIZES |= {"activation_fn": "gelu"}  # the gradient of ReLU jumps where rounding changes the sign of an input
WINDOWS = {"attention_window": 8, "pooling_window": 32, "encoder_attention_layers": "1"}
BLOCKS = {"encoder_attention": "block-sparse", "sparse_block": 8, "sparse_random": 1}
#: One small model of every family and every attention of an encoder: architecture and flags.
MODELS: list[tuple[str, dict[str, Any]]] = [
    ("hat_transformer_tiny", {}),
    ("hat_transformer_tiny", {"encoder_normalize_before": True, "decoder_normalize_before": True}),
    ("hat_bart_base", {}),
    ("hat_bart_base", {"no_hierarchy": True}),
    ("poolingformer_bart_base", WINDOWS),
    ("hat_roberta_tiny", {}),
    ("hat_roberta_tiny", {"no_hierarchy": True}),
    ("hat_roberta_tiny", {"encoder_attention": "window", "attention_window": 8}),
    ("hat_roberta_tiny", BLOCKS),
    ("poolingformer_tiny", WINDOWS),
    ("hierarchical_transformer_tiny", {}),
    ("hierarchical_transformer_tiny", {"segment_by": "marker", "segment_length": 32}),
    ("hat_units_tiny", {}),
    ("ernie_sparse_tiny", {}),
    ("ernie_sparse_lra_pathfinder", {"encoder_qkv_dim": 32, **BLOCKS}),
    ("bigbird_lra_listops", BLOCKS),  # with blocks of 64 documents this short have full attention
    ("transformer_lra_listops", {}),
]
#: Largest distance of loss and outputs, about thrice what rounding costs on a CPU; gradients may be 3 times as far.
TOLERANCES = {torch.float32: 1e-4, torch.bfloat16: 0.08, torch.float16: 0.01}
TIE = 1e-4  # between the scores of two texts
SEARCHES: list[dict[str, Any]] = [
    {"beam_size": 1},
    {"beam_size": 5, "len_penalty": 2.0, "min_len": 4},
    {"beam_size": 4, "min_len": 12, "no_repeat_ngram_size": 2},
    {"beam_size": 4, "unk_penalty": 2.0, "temperature": 1.4, "normalize_scores": False},
]


def small_model(arch: str, flags: dict[str, Any]) -> Any:
    """A model whose attention is sharp, so that an error anywhere changes the outputs; without dropout."""
    model = model_of(arch, **{**SIZES, **flags})
    if arch == "hat_units_tiny":
        model.register_classification_head("evidence", num_classes=1, level="evidence")
        model.classification_heads["evidence"].eval()  # its dropout has no flag
    with torch.no_grad():
        for part, weight in model.named_parameters():
            if weight.dim() == 2:
                nn.init.normal_(weight, std=(2 if "q_proj" in part or "k_proj" in part else 1) * weight.size(1) ** -0.5)
    return model


def batch(device: str) -> dict[str, Any]:
    """Documents with padding and a question."""
    shares = [1, 0.15, 0.8, 0.04]
    documents = sample({"documents": 4, "source": 300, "target": 60, "vocabulary": 500, "shares": shares})
    documents["net_input"]["src_tokens"][:, 5] = EOS  # ends the question, whose tokens are global
    return apply_to_sample(lambda tensor: tensor.to(device), documents)


def loss_and_logits(model: Any, data: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """The chunked loss and the logits of a text; of an encoder those of evidence or of a masked-LM."""
    inputs, target = data["net_input"], data["target"]
    if hasattr(model, "decoder"):
        return criterion_of(CHUNKED)(model, data)[0], model(**inputs)[0][target.ne(PAD)]
    tokens = inputs["src_tokens"]
    if "evidence" in model.classification_heads:
        logits = model(tokens, classification_head_name="evidence")[0]
        return F.binary_cross_entropy_with_logits(logits.float(), torch.zeros_like(logits).float()), logits
    guessed = tokens.ne(PAD) & tokens.ne(BOS) & (torch.arange(tokens.size(1), device=tokens.device) % 5 == 2)
    logits = model(tokens, masked_tokens=guessed)[0]
    return F.cross_entropy(logits.float(), tokens[guessed], reduction="sum"), logits


def step(model: Any, device: str) -> tuple[dict[str, Tensor], list[str]]:
    """Loss, outputs and gradients, in fp32 on the CPU, and the names of the gradients."""
    loss, logits = loss_and_logits(model.to(device), batch(device))
    loss.backward()
    gradients = {name: p.grad.flatten() for name, p in model.named_parameters() if p.grad is not None}
    result = {"loss": loss, "outputs": logits, "gradients": torch.cat(list(gradients.values()))}
    return {name: x.detach().float().cpu() for name, x in result.items()}, list(gradients)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("arch", "flags"), MODELS)
def test_loss_outputs_and_gradients_differ_by_rounding_only(arch: str, flags: str, device: str) -> None:
    base = small_model(arch, flags)
    for dtype in TOLERANCES if device != "cpu" else [torch.bfloat16]:
        rounded = copy.deepcopy(base).to(dtype)
        expected, names = step(copy.deepcopy(rounded).float(), "cpu")
        actual, same_names = step(rounded, device)
        assert same_names == names, dtype
        for what, value in actual.items():
            limit = TOLERANCES[dtype] * (3 if what == "gradients" else 1)
            assert relative(value, expected[what]) <= limit, (dtype, what)


def test_all_models_are_checked() -> None:
    registered = {each for each in ARCH_MODEL_REGISTRY.values() if each.__module__.startswith("hat_fairseq.")}
    assert {ARCH_MODEL_REGISTRY[arch] for arch, _ in MODELS} == registered


def search(
    model: Any, generator_class: Any, device: str, options: dict[str, Any]
) -> list[list[tuple[list[int], float]]]:
    """Of every document the hypotheses, best first, with their scores."""
    generator = generator_class([model], model.decoder.dictionary, max_len_a=0, max_len_b=20, **options)
    block_texts_alone(generator)
    tokens = batch(device)["net_input"]["src_tokens"]
    output = generator.generate([model], {"net_input": {"src_tokens": tokens, "src_lengths": tokens.ne(PAD).sum(1)}})
    return [[(h["tokens"].tolist(), float(h["score"])) for h in beams] for beams in output]


@pytest.mark.parametrize("device", [pytest.param("cpu", marks=pytest.mark.slow), DEVICES[1]])
@pytest.mark.parametrize(("arch", "flags"), MODELS[2:5])
def test_fp32_search_gives_the_texts_of_fairseqs_loop_and_of_the_cpu(arch: str, flags: str, device: str) -> None:
    """But for ties: texts with the same scores."""
    exact = decisive(small_model(arch, flags)).eval()
    exact.decoder.output_projection.weight.data[EOS].normal_(std=0.7)  # texts end, some before others
    model = copy.deepcopy(exact).to(device)
    for options in SEARCHES:
        texts = search(model, SharedMemoryGenerator, device, options)
        for reference in (
            search(model, SequenceGenerator, device, options),
            search(exact, SharedMemoryGenerator, "cpu", options),
        ):
            for one, other in zip(texts, reference, strict=True):
                same = [text for text, _ in one] == [text for text, _ in other]
                tie = all(abs(x - y) < TIE for (_, x), (_, y) in zip(one, other, strict=True))
                assert same or tie, (arch, flags, options)
