"""The faster kernel is chosen, once; a user and a checkpoint can fix the choice."""

import time
from functools import partial

import pytest
import torch
from torch import Tensor

from hat_fairseq.kernels import choice
from hat_fairseq.kernels.linear import MIN_WEIGHT, fastest_product
from hat_fairseq.kernels.torch_private import ONEDNN

CANDIDATES = {"slow": partial(time.sleep, 0.02), "fast": partial(time.sleep, 0.001)}


@pytest.fixture(autouse=True)
def no_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "_choices", {})
    monkeypatch.delenv("HAT_KERNELS", raising=False)


def test_the_faster_kernel_is_chosen_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        assert choice.fastest("few_rows", lambda: CANDIDATES) == "fast"
    assert "kernel for few_rows: fast (slow 2" in caplog.text
    assert choice.fastest("few_rows", lambda: pytest.fail("timed twice")) == "fast"
    assert choice.chosen() == {"few_rows": "fast"}


def test_the_first_candidate_stays_if_no_other_is_a_tenth_faster() -> None:
    candidates = {"first": partial(time.sleep, 0.05), "little_faster": partial(time.sleep, 0.049)}
    assert choice.fastest("few_rows", lambda: candidates) == "first"


def test_the_environment_fixes_a_choice_also_against_a_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAT_KERNELS", "few_rows=slow")
    choice.keep({"few_rows": "fast", "many_rows": "fast"})
    assert choice.fastest("few_rows", lambda: CANDIDATES) == "slow"
    assert choice.fastest("many_rows", lambda: CANDIDATES) == "fast"


@pytest.mark.parametrize("words", ["few_rows=unknown", "rows=slow", "few_rows", "slow"])
def test_a_wrong_environment_is_refused(monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    monkeypatch.setenv("HAT_KERNELS", words)
    with pytest.raises(ValueError, match="HAT_KERNELS: .* unknown; "):
        choice.fastest("few_rows", lambda: CANDIDATES)


@pytest.mark.skipif(not ONEDNN, reason="this torch has no oneDNN: there is nothing to choose")
def test_products_are_timed_for_few_and_many_rows_and_draw_no_random_numbers() -> None:
    weight, state = torch.randn(MIN_WEIGHT // 64, 64), torch.get_rng_state()
    for rows in (1, 32, 33):
        fastest_product(torch.zeros(rows, 64), weight)
    assert choice.chosen().keys() == {"few_rows", "many_rows"}
    assert torch.equal(torch.get_rng_state(), state)


def test_nothing_is_timed_for_a_subclass_of_tensor() -> None:
    class Subclass(Tensor):
        pass

    x = torch.zeros(1, 256).as_subclass(Subclass)
    assert fastest_product(x, torch.zeros(256, 256)) is torch.nn.functional.linear and not choice.chosen()
