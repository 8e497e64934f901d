"""The chunked criterion is fairseq's: losses, gradients, what is logged."""

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch
from building import PAD, TINY, build, documents, targets
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.distributed import ModuleProxyWrapper
from helpers import assert_close
from torch import Tensor

from hat_fairseq.criterions.chunked_label_smoothed_cross_entropy import ChunkedLabelSmoothedCrossEntropy
from hat_fairseq.kernels import loss

TASK = Namespace(target_dictionary=Namespace(pad=lambda: PAD))
MODELS = {
    "hat_transformer_tiny": torch.float32,
    "hat_bart_base": torch.bfloat16,
    "transformer": torch.float16,
    "bart_base": torch.float32,
}


def sample(lengths: list[int]) -> dict[str, Any]:
    """Documents whose targets have these lengths."""
    target = targets(len(lengths), max(lengths))[:, 1:]
    target = torch.nn.functional.pad(target, (0, 1), value=2)
    for row, length in zip(target, lengths, strict=True):
        row[length - 1], row[length:] = 2, PAD
    shifted = torch.cat([torch.full((len(lengths), 1), 2), target[:, :-1]], 1).masked_fill(target.eq(PAD), PAD)
    source = documents([17, 9, 12][: len(lengths)])
    inputs = {"src_tokens": source, "src_lengths": source.ne(PAD).sum(1), "prev_output_tokens": shifted}
    return {"net_input": inputs, "target": target, "ntokens": int(target.ne(PAD).sum()), "nsentences": len(target)}


def model_of(arch: str, dtype: torch.dtype = torch.float32) -> Any:
    return build(arch, TINY, share_all_embeddings=True).to(dtype).train()


def run(criterion: Any, model: Any, batch: dict[str, Any], factor: float = 1.0) -> tuple[Any, dict[str, Tensor]]:
    model.zero_grad(set_to_none=True)
    torch.manual_seed(2)
    loss, size, log = criterion(model, batch)
    (loss * factor).backward()
    return (loss, size, log), {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("arch", MODELS)
@pytest.mark.parametrize("lengths", [[1], [16], [9, 16, 2]])
def test_it_is_fairseqs_criterion(lengths: list[int], arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loss, sample size, what is logged, and gradients, in chunks of seven positions."""
    monkeypatch.setattr(loss, "CHUNK", 60 * 7)
    dtype = MODELS[arch]
    model, factor = model_of(arch, dtype), 64.0 if dtype is torch.float16 else 0.25
    options = {"sentence_avg": len(lengths) == 1, "label_smoothing": 0.1, "report_accuracy": True}
    options["ignore_prefix_size"] = 0 if len(lengths) == 1 else 1
    kinds = (ChunkedLabelSmoothedCrossEntropy, LabelSmoothedCrossEntropyCriterion)
    (actual, gradients), (expected, expected_gradients) = (
        run(kind(TASK, **options), model, sample(lengths), factor) for kind in kinds
    )
    rtol = 1e-4 if dtype is torch.float32 else torch.finfo(dtype).eps
    torch.testing.assert_close(actual[0], expected[0], rtol=rtol, atol=2e-5)
    assert actual[1] == expected[1]
    assert actual[2].keys() == expected[2].keys()
    assert all(actual[2][name] == expected[2][name] for name in ("total", "n_correct", "ntokens", "nsentences"))
    torch.testing.assert_close(actual[2]["nll_loss"], expected[2]["nll_loss"], rtol=rtol, atol=2e-5)
    assert gradients.keys() == expected_gradients.keys()
    scale = 0.1 * max(float(gradient.float().norm()) for gradient in expected_gradients.values())
    for name, gradient in gradients.items():
        assert gradient.dtype is dtype
        wanted = torch.float32 if dtype is torch.float32 else torch.bfloat16
        assert_close(gradient, expected_gradients[name], wanted, scale=scale)


def test_autocast_rounds_as_it_does_with_a_projection() -> None:
    model, batch, results = model_of("hat_transformer_tiny"), sample([16, 9]), []
    for kind in (ChunkedLabelSmoothedCrossEntropy, LabelSmoothedCrossEntropyCriterion):
        with torch.autocast("cpu", torch.bfloat16):
            results.append(run(kind(TASK, True, 0.1), model, batch))
    assert_close(results[0][0][0], results[1][0][0])
    for name, gradient in results[0][1].items():
        assert_close(gradient, results[1][1][name], torch.bfloat16)


def test_validation_gives_all_losses_on_demand_and_no_gradients() -> None:
    model, batch = model_of("hat_transformer_tiny").eval(), sample([16, 9])
    kinds = (ChunkedLabelSmoothedCrossEntropy, LabelSmoothedCrossEntropyCriterion)
    chunked, reference = (kind(TASK, False, 0.1) for kind in kinds)
    with torch.no_grad():
        assert_close(chunked(model, batch)[0], reference(model, batch)[0])
        assert torch.equal(chunked(model, batch, reduce=False)[0], reference(model, batch, reduce=False)[0])


def test_a_second_backward_pass_and_a_model_without_a_plain_projection_are_refused() -> None:
    criterion = ChunkedLabelSmoothedCrossEntropy(TASK, False, 0.1)
    loss = criterion(model_of("hat_transformer_tiny"), sample([3]))[0]
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="for one backward pass only"):
        loss.backward()
    model = build("hat_roberta_base", "--encoder-embed-dim 24 --encoder-layers 1 --encoder-attention-heads 4")
    with pytest.raises(ValueError, match="HatRobertaModel has not: use --criterion label_smoothed_cross_entropy"):
        criterion(model, sample([3]))


def two_processes(rank: int, folder: str) -> None:
    """Gradients of two processes with a batch each, averaged by DDP, and those of both batches in one process."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=2)
    criterion, batches = ChunkedLabelSmoothedCrossEntropy(TASK, False, 0.1), [sample([9, 16, 2]), sample([5, 3])]
    torch.manual_seed(0)
    model = build("hat_transformer", TINY).train()
    assert model.decoder.output_projection.weight is not model.decoder.embed_tokens.weight
    parallel = torch.nn.parallel.DistributedDataParallel(model, find_unused_parameters=True)
    wrapped = ModuleProxyWrapper(parallel)  # as in fairseq
    for _ in range(2):
        wrapped.zero_grad()
        criterion(wrapped, batches[rank])[0].backward()
    averaged = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model.zero_grad()
    for batch in batches:
        (criterion(model, batch)[0] / 2).backward()
    for name, parameter in model.named_parameters():
        assert_close(averaged[name], parameter.grad)
    torch.distributed.destroy_process_group()


@pytest.mark.slow
def test_a_table_of_its_own_is_found_by_a_search_for_unused_parameters(tmp_path: Path) -> None:
    torch.multiprocessing.spawn(two_processes, (str(tmp_path),), nprocs=2)
