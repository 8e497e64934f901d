"""A folder whose dictionary is not that of its weights is refused, although its manifest agrees with its files."""

import json
import shutil
from pathlib import Path

import pytest
from commands import hat, refusal

import hat_fairseq
from hat_fairseq.data.checksums import checksums_of
from hat_fairseq.hf import HatTokenizer
from hat_fairseq.model_folder import MANIFEST
from hat_fairseq.weights.names import DEMO


def swap_lines(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[0], lines[1] = lines[1], lines[0]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize("stream", ["source", "target", "role"])
def test_a_package(stream: str, tmp_path: Path) -> None:
    folder = shutil.copytree(DEMO, tmp_path / "demo")
    path = folder / f"bin/dict.{stream}.txt"
    swap_lines(path)
    (folder / MANIFEST).unlink()  # which would be counted
    (folder / MANIFEST).write_text(json.dumps(checksums_of(folder)))
    with pytest.raises(ValueError, match=f"the dictionary of the {stream} is not the one that the model was trained"):
        hat_fairseq.load(folder, device="cpu")
    (documents := tmp_path / "in.jsonl").write_text('{"id": "1", "turns": [{"role": "PM", "text": "Hello."}]}\n')
    words = ("generate", folder, documents, "--out", tmp_path / "out.jsonl", "--device", "cpu")
    assert "is not the one that the model was trained with" in refusal(*words)


def test_a_folder_for_transformers(tmp_path: Path) -> None:
    assert hat("export", DEMO, "--out", (folder := tmp_path / "hf")) == 0
    HatTokenizer.from_pretrained(folder)
    shutil.copytree(folder, other := tmp_path / "swapped")
    swap_lines(other / "bin/dict.target.txt")
    with pytest.raises(ValueError, match="the dictionary of the target is not the one"):
        HatTokenizer.from_pretrained(other)
    shutil.copytree(folder, longer := tmp_path / "longer")
    (longer / "hat_fairseq.json").unlink()
    with open(longer / "bin/dict.target.txt", "a", encoding="utf-8") as file:
        file.write("qqqqzzzz 1\n")
    with pytest.raises(ValueError, match="vocab_size is [0-9]+, and the dictionary has [0-9]+ symbols"):
        HatTokenizer.from_pretrained(longer)
