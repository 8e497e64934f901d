"""torch's own data parallelism on two gloo processes: no parameter is ever unused, so nothing has to search for one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.distributed
import torch.multiprocessing
from building import TINY, Vocabulary, build, documents, targets
from helpers import assert_close


def source_of(rank: int) -> torch.Tensor:
    """Rank 0 has documents with sentences, rank 1 a single one without any marker."""
    return documents([17, 9]) if rank == 0 else documents([8], seed=5).masked_fill(documents([8], seed=5) == 0, 9)


def loss(model: torch.nn.Module, rank: int) -> torch.Tensor:
    source = source_of(rank)
    roles = torch.where(source == 1, 1, 4)
    target = targets(len(source), 6, seed=rank)
    logits = model(source, None, target, roles=roles)[0]
    return torch.nn.functional.cross_entropy(logits[:, :-1].transpose(1, 2), target[:, 1:])


def two_steps(model: torch.nn.Module, losses) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):  # an unused parameter shows at the second forward
        optimizer.zero_grad()
        losses().backward()
        optimizer.step()


def process(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=2)
    model = build("hat_transformer_tiny", TINY, Vocabulary(roles=2))
    parallel = torch.nn.parallel.DistributedDataParallel(model, find_unused_parameters=False)
    two_steps(parallel, lambda: loss(parallel, rank))
    torch.save(model.state_dict(), f"{folder}/{rank}.pt")
    torch.distributed.destroy_process_group()


@pytest.mark.slow
def test_two_processes_without_unused_parameter_search_equal_one(tmp_path: Path) -> None:
    torch.multiprocessing.spawn(process, (str(tmp_path),), nprocs=2)
    single = build("hat_transformer_tiny", TINY, Vocabulary(roles=2))
    two_steps(single, lambda: (loss(single, 0) + loss(single, 1)) / 2)
    for rank in (0, 1):
        for name, tensor in torch.load(tmp_path / f"{rank}.pt", weights_only=True).items():
            assert_close(tensor, single.state_dict()[name])
