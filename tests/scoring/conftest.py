"""AMI meetings (CC BY 4.0) as the repository carries them, before any reader filters words."""

from pathlib import Path

import pytest

from hat_fairseq.data.records_json import read_records

AMI = Path(__file__).parents[2] / "preprocess" / "ami_data"


@pytest.fixture(scope="session")
def leads() -> list[str]:
    """The first 286 words of each of the 20 test meetings."""
    meetings = read_records(AMI / "ami.test.jsonl.gz")
    return [" ".join(" ".join(meeting.elements or ()).split()[:286]) for meeting in meetings]


@pytest.fixture(scope="session")
def targets() -> list[list[tuple[str, ...]]]:
    """The reference of each test meeting, as the only one."""
    return [[meeting.target or ()] for meeting in read_records(AMI / "ami.test.jsonl.gz")]
