"""AMI meetings (CC BY 4.0) as the repository carries them, before any reader filters words."""

from __future__ import annotations

from pathlib import Path

import pytest

from hat_fairseq.data.document import Document, read_documents

AMI = Path(__file__).parents[2] / "preprocess" / "ami_data"


@pytest.fixture(scope="session")
def ami_train() -> list[Document]:
    return list(read_documents(AMI / "ami.train.jsonl.gz"))


@pytest.fixture(scope="session")
def ami_test() -> list[Document]:
    return list(read_documents(AMI / "ami.test.jsonl.gz"))
