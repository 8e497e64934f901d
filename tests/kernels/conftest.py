"""Both libraries that multiply matrices on a CPU, whichever this processor prefers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hat_fairseq.kernels import attention, linear, torch_private

CHOICES = (attention._choose, linear._choose)


@pytest.fixture(params=["onednn", "mkl"])
def either_library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if request.param == "onednn" and not torch_private.ONEDNN:
        pytest.skip("this torch has no oneDNN")
    monkeypatch.setattr(torch_private, "PREFER_ONEDNN", request.param == "onednn")
    for choice in CHOICES:
        choice.cache_clear()
    yield
    for choice in CHOICES:
        choice.cache_clear()
