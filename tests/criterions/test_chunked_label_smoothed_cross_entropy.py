"""The chunked criterion is fairseq's: losses, gradients, what is logged."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch
from building import PAD, TINY, build, documents, targets
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.distributed import ModuleProxyWrapper
from fairseq.logging import metrics
from helpers import assert_close
from torch import Tensor

from hat_fairseq.criterions.chunked_label_smoothed_cross_entropy import ChunkedLabelSmoothedCrossEntropy
from hat_fairseq.kernels import loss

TASK = Namespace(target_dictionary=Namespace(pad=lambda: PAD))
LENGTHS = [[1], [16], [9, 16, 2]]
ARCHITECTURES = ["hat_transformer_tiny", "hat_bart_base", "transformer", "bart_base"]


@pytest.fixture(params=[1, 7, 1000], ids=lambda rows: f"{rows} rows a chunk")
def rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(loss, "CHUNK", 60 * request.param)
    return request.param


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


def run(criterion: Any, model: Any, batch: dict[str, Any], factor: float) -> tuple[Any, dict[str, Tensor]]:
    model.zero_grad(set_to_none=True)
    torch.manual_seed(2)
    loss, size, log = criterion(model, batch)
    (loss * factor).backward()
    return (loss, size, log), {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


DTYPES = [torch.float32, torch.bfloat16, torch.float16]
# All pairs of a network with a type and with lengths.
PAIRS = [(arch, DTYPES[(a + n) % 3], ls) for a, arch in enumerate(ARCHITECTURES) for n, ls in enumerate(LENGTHS)]


@pytest.mark.parametrize(("arch", "dtype", "lengths"), PAIRS)
def test_it_is_fairseqs_criterion(rows: int, lengths: list[int], arch: str, dtype: torch.dtype) -> None:
    options = {"sentence_avg": len(lengths) == 1, "label_smoothing": 0.1, "report_accuracy": True}
    options["ignore_prefix_size"] = 0 if len(lengths) == 1 else 1
    model, batch = model_of(arch, dtype), sample(lengths)
    factor = 64.0 if dtype is torch.float16 else 1.0 if arch == "bart_base" else 0.25
    (loss, size, log), gradients = run(ChunkedLabelSmoothedCrossEntropy(TASK, **options), model, batch, factor)
    (expected, expected_size, expected_log), expected_gradients = run(
        LabelSmoothedCrossEntropyCriterion(TASK, **options), model, batch, factor
    )
    assert_close(loss, expected)
    assert size == expected_size and log.keys() == expected_log.keys() and log["total"] == expected_log["total"]
    assert log["n_correct"] == expected_log["n_correct"]
    assert_close(log["nll_loss"], expected_log["nll_loss"])
    assert gradients.keys() == expected_gradients.keys()
    scale = 0.1 * max(float(gradient.float().norm()) for gradient in expected_gradients.values())
    reduced = torch.float32 if dtype is torch.float32 else torch.bfloat16
    for name, gradient in gradients.items():
        assert gradient.dtype is dtype
        assert_close(gradient, expected_gradients[name], reduced, scale=scale)


def test_autocast_rounds_as_it_does_with_a_projection() -> None:
    model, batch = model_of("hat_transformer_tiny"), sample([16, 9])
    results = []
    for criterion in (ChunkedLabelSmoothedCrossEntropy, LabelSmoothedCrossEntropyCriterion):
        with torch.autocast("cpu", torch.bfloat16):
            results.append(run(criterion(TASK, True, 0.1), model, batch, 1.0))
    assert_close(results[0][0][0], results[1][0][0])
    for name, gradient in results[0][1].items():
        assert_close(gradient, results[1][1][name], torch.bfloat16)


def test_the_logged_metrics_are_fairseqs() -> None:
    model, batch, logged = model_of("hat_transformer_tiny"), sample([16, 9, 5]), []
    for criterion in (ChunkedLabelSmoothedCrossEntropy, LabelSmoothedCrossEntropyCriterion):
        log = criterion(TASK, False, 0.1, report_accuracy=True)(model, batch)[2]
        with metrics.aggregate(new_root=True) as values:
            criterion.reduce_metrics([log, log])
        logged.append(values.get_smoothed_values())
    assert logged[0] == logged[1] and {"loss", "nll_loss", "ppl", "accuracy"} <= logged[0].keys()


def test_validation_computes_no_gradients_and_all_losses_on_demand() -> None:
    model, batch = model_of("hat_transformer_tiny").eval(), sample([16, 9])
    chunked, reference = (
        kind(TASK, False, 0.1) for kind in (ChunkedLabelSmoothedCrossEntropy, LabelSmoothedCrossEntropyCriterion)
    )
    with torch.no_grad():
        assert_close(chunked(model, batch)[0], reference(model, batch)[0])
        assert torch.equal(chunked(model, batch, reduce=False)[0], reference(model, batch, reduce=False)[0])


def test_gradients_add_up_over_batches_and_are_taken_once() -> None:
    model, criterion = model_of("hat_transformer_tiny"), ChunkedLabelSmoothedCrossEntropy(TASK, False, 0.1)
    batches, table = [sample([16, 9]), sample([3])], model.decoder.embed_tokens.weight
    each = [run(criterion, model, batch, 1.0)[1]["encoder.embed_tokens.weight"].clone() for batch in batches]
    model.zero_grad(set_to_none=True)
    for batch in batches:
        torch.manual_seed(2)
        loss = criterion(model, batch)[0]
        loss.backward(retain_graph=True)
    assert_close(table.grad, each[0] + each[1])
    with pytest.raises(RuntimeError, match="for one backward pass only"):
        loss.backward()


def test_a_model_without_a_plain_projection_is_refused() -> None:
    model = build("hat_roberta_base", "--encoder-embed-dim 24 --encoder-layers 1 --encoder-attention-heads 4")
    with pytest.raises(ValueError, match="HatRobertaModel has not: use --criterion label_smoothed_cross_entropy"):
        ChunkedLabelSmoothedCrossEntropy(TASK, False, 0.1)(model, sample([3]))


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
