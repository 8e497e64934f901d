"""Both libraries that multiply matrices on a CPU, whichever is the faster one here."""

import pytest

from hat_fairseq.kernels import choice, torch_private


@pytest.fixture(params=["onednn", "mkl"])
def either_library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "onednn" and not torch_private.ONEDNN:
        pytest.skip("this torch has no oneDNN")
    for purpose in ("few_rows", "many_rows"):
        monkeypatch.setitem(choice._choices, purpose, request.param)
