"""What the models share: one synchronisation a forward pass, several heads at once, no switch on a model's class."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from building import TINY, TINY_ENCODER, build, documents, targets
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

PACKAGE = Path(__file__).resolve().parents[2] / "hat_fairseq"
SEGMENTS = (
    "--encoder-embed-dim 24 --encoder-ffn-embed-dim 40 --encoder-attention-heads 4 --segment-length 6 --max-segments 9 "
    "--layout S|SD --dropout 0 --attention-dropout 0 --pooler-dropout 0"
)
MODELS = {
    "hat_bart": ("hat_bart_base", TINY),
    "hat_bart plain": ("hat_bart_base", f"{TINY} --no-hierarchy"),
    "hat_roberta": ("hat_roberta_base", TINY_ENCODER),
    "ernie_sparse": ("ernie_sparse_base", f"{TINY_ENCODER} --sparse-block 2 --sparse-random 0"),
    "by length": ("hierarchical_transformer", f"{SEGMENTS} --segment-by length"),
    "by marker": ("hierarchical_transformer", f"{SEGMENTS} --segment-by marker"),
}
ENCODERS = [name for name in MODELS if "bart" not in name]


class CountSynchronisations(TorchDispatchMode):
    """Counts the numbers that leave the device; `Tensor.tolist` reads all of a tensor at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.count = 0
        tolist = Tensor.tolist

        def counted(tensor: Tensor) -> Any:
            self.count += 1
            return tolist(tensor)

        monkeypatch.setattr(Tensor, "tolist", counted)

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += function in (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.nonzero.default)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("lengths", [[17, 17], [17, 9, 2]], ids=str)
def test_a_forward_pass_synchronises_once(name: str, lengths: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    arch, flags = MODELS[name]
    model, source = build(arch, flags).eval(), documents(lengths)
    with torch.no_grad(), CountSynchronisations(monkeypatch) as mode:
        if hasattr(model, "decoder"):
            model(source, None, targets(len(lengths), 5))
        else:
            model(source)
    assert mode.count == 1 + (name == "by marker")  # the number of segments, before anything is laid out


@pytest.mark.parametrize("name", ENCODERS)
def test_several_heads_in_one_forward_pass(name: str) -> None:
    """One encoder pass, a loss for each head: the sum's gradients are the sums of the losses' gradients."""
    arch, flags = MODELS[name]
    model, source = build(arch, flags), documents([17, 9, 2])
    heads = {"topic": ("document", 3), "role": ("segment", 2), "word": ("token", 4)}
    for head, (of, classes) in heads.items():
        model.register_classification_head(head, num_classes=classes, level=of)
    passes = []
    model.encoder.register_forward_hook(lambda *unused: passes.append(1))
    logits, _ = model(source, classification_head_name=list(heads))
    assert list(logits) == list(heads) and len(passes) == 1
    assert [tensor.size(-1) for tensor in logits.values()] == [3, 2, 4]

    def gradients(losses: list[Tensor]) -> dict[str, Tensor]:
        model.zero_grad()
        torch.stack(losses).sum().backward()
        return {key: p.grad.clone() for key, p in model.named_parameters() if p.grad is not None}

    def loss(tensor: Tensor) -> Tensor:
        flat = tensor.flatten(0, -2)
        return F.cross_entropy(flat, torch.arange(len(flat)) % flat.size(-1))

    together = gradients([loss(tensor) for tensor in logits.values()])
    separate = [gradients([loss(model(source, classification_head_name=head)[0])]) for head in heads]
    assert together.keys() == {key for part in separate for key in part}
    for key, gradient in together.items():
        torch.testing.assert_close(gradient, sum(part[key] for part in separate if key in part), atol=1e-5, rtol=1e-4)


def strings(tree: ast.AST) -> set[str]:
    """Strings of the code that are not docstrings."""
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docs)
    return {node.value for node in constants if isinstance(node.value, str)}


def test_nothing_but_models_switches_on_a_models_class_or_name() -> None:
    """Other parts ask a model what it can do. `weights` reads and writes files of one released model each."""
    models = {name: model for name, model in MODEL_REGISTRY.items() if model.__module__.startswith("hat_fairseq.")}
    classes = {model.__name__ for model in models.values()}
    names = set(models) | {arch for arch, model in ARCH_MODEL_REGISTRY.items() if model in models.values()}
    assert len(models) == 5
    switches = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.relative_to(PACKAGE).parts[0] in ("models", "networks", "weights"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        used |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        switches += [(path.name, word) for word in used & classes | strings(tree) & names]
    assert not switches
