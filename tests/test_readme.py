"""The commands of fairseq that README prints run as they are printed, and make the bytes that it promises."""

import re
from pathlib import Path

import pytest
from commands import REPOSITORY, environment, run_command
from warm import WarmPython

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_commands_of_fairseq_run_as_printed(tmp_path: Path, warm: WarmPython) -> None:
    section = README.partition("## With fairseq's own commands")[2]
    block = re.search(r"^```bash\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert block is not None
    assert block[1].count("fairseq-") == 3
    generated = run_command("bash", "-euc", block[1], cwd=tmp_path, env=environment(PATH=warm.programs)).stdout
    assert len(re.findall(r"^H-\d+\t", generated, re.MULTILINE)) == 20
    made = sorted((tmp_path / "data-bin/plain").glob("*.*.*"))
    ours = tmp_path / "data-bin/ami_small/bin"
    assert len(made) > 12
    assert [path.name for path in made if path.read_bytes() != (ours / path.name).read_bytes()] == []


def test_readme_is_read_in_a_few_minutes() -> None:
    assert len(README.splitlines()) <= 95
