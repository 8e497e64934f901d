"""Real meetings for the tests of the data path: the AMI corpus that the repository carries."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from hat_fairseq.data.document import Document, read_documents
from hat_fairseq.data.learned_bpe import LearnedBpe

AMI = Path(__file__).resolve().parents[2] / "preprocess" / "ami_data"


@pytest.fixture(scope="session")
def meetings() -> list[Document]:
    return list(islice(read_documents(AMI / "ami.train.jsonl.gz"), 8))


@pytest.fixture(scope="session")
def lines(meetings: list[Document]) -> list[str]:
    """Turns and summary sentences."""
    return [line for meeting in meetings for line in (*(meeting.sentences or ()), *(meeting.target or ()))]


@pytest.fixture(scope="session")
def learned_bpe(lines: list[str]) -> LearnedBpe:
    return LearnedBpe.learn(lines, num_codes=800)
