"""Both libraries that multiply matrices on a CPU, whichever this processor prefers."""

import pytest

from hat_fairseq.kernels import torch_private


@pytest.fixture(params=["onednn", "mkl"])
def either_library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "onednn" and not torch_private.ONEDNN:
        pytest.skip("this torch has no oneDNN")
    monkeypatch.setattr(torch_private, "PREFER_ONEDNN", request.param == "onednn")
