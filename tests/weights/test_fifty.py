"""`docs/encoders.md`: each of 50 encoders is read and equal to transformers', or refused as the page says."""

import re
from pathlib import Path

import fifty
import pytest

from hat_fairseq import cli

PAGE = (Path(__file__).parents[2] / "docs" / "encoders.md").read_text()
ROWS = {row[0]: row[1:] for row in re.findall(r"^\| `([^`]+/[^`]+)` \| (\S+) \| (.+) \|$", PAGE, re.MULTILINE)}


def test_the_page_names_50() -> None:
    assert [*ROWS] == [*fifty.FIFTY]
    assert len(ROWS) == 50


@pytest.mark.slow
@pytest.mark.parametrize("name", fifty.FIFTY)
def test_read_or_refused(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fifty.write(name, tmp_path / "folder")
    capsys.readouterr()
    status = cli.main(["import", str(tmp_path / "folder"), "--out", str(tmp_path / "own/model.pt")])
    printed = capsys.readouterr()
    family, words = ROWS[name]
    if family == "refused":
        assert status == 2
        assert words in printed.err
        assert printed.err.count("\n") == 1
        return
    assert status == 0, printed.err
    *_, ids, states = printed.out.splitlines()
    print(f"PARITY {name} | {ids} | {states}")
    assert f"folder: {family}\n" in printed.out
    assert re.fullmatch(r"ids of \d+ texts equal .*", ids)
    if figure := re.fullmatch(r"states equal those of transformers \S+ to (.+)", states):
        assert words.startswith("equal to ")
        assert float(figure[1].replace("the last bit", "0")) < 2e-6
    else:
        assert words in states
