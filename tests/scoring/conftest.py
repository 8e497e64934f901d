"""AMI meetings (CC BY 4.0) as the repository carries them, before any reader filters words."""

from __future__ import annotations

from pathlib import Path

import pytest

from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import read_records

AMI = Path(__file__).parents[2] / "preprocess" / "ami_data"


@pytest.fixture(scope="session")
def ami_train() -> list[Record]:
    return list(read_records(AMI / "ami.train.jsonl.gz"))


@pytest.fixture(scope="session")
def ami_test() -> list[Record]:
    return list(read_records(AMI / "ami.test.jsonl.gz"))
