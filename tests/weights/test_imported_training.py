"""fairseq-train goes on from what `hat import` wrote, with the flags that it printed."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from commands import USER_DIR
from released_hat_sample import release
from warm import WarmPython

from hat_fairseq import cli

ROWS = 97  # four special symbols, 92 words, <mask>


@pytest.fixture(scope="module")
def data(warm: WarmPython, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin directory of a few rows, at most 24 tokens with a `<s>` at every sixth."""
    folder = tmp_path_factory.mktemp("data")
    words = [f"w{number}" for number in range(ROWS - 5)]
    rows = [[words[(7 * row + i) % len(words)] if i % 6 else "<s>" for i in range(18 + row % 6)] for row in range(8)]
    for split in ("train", "valid"):
        (folder / split).write_text("".join(" ".join(row) + "\n" for row in rows))
    (folder / "dict.txt").write_text("".join(f"{word} 1\n" for word in words))
    command = (
        "fairseq_cli.preprocess --only-source --srcdict dict.txt --trainpref train --validpref valid --destdir bin"
    )
    warm.run(command.split(), folder, folder / "log")
    return folder / "bin"


@pytest.fixture(scope="module")
def roberta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    transformers = pytest.importorskip("transformers", reason="pip install 'hat_fairseq[test]'")
    sizes = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 40}
    config = transformers.RobertaConfig(
        vocab_size=ROWS, max_position_embeddings=26, type_vocab_size=1, layer_norm_eps=1e-5, **sizes
    )
    folder = tmp_path_factory.mktemp("roberta")
    transformers.RobertaForMaskedLM(config).save_pretrained(folder)
    return folder


def train(warm: WarmPython, data: Path, flags: str, folder: Path) -> str:
    command = f"fairseq_cli.train {data} --user-dir {USER_DIR} --task masked_document_lm --criterion masked_lm --cpu "
    command += f"--sample-break-mode eos --tokens-per-sample 24 --mask-prob 0.4 --batch-size 4 {flags} --no-save "
    command += "--optimizer adam --lr 0.001 --max-update 1 --disable-validation --num-workers 0"
    return warm.run(shlex.split(command), folder, folder / "log")


@pytest.mark.parametrize(
    ("arch", "new"),
    [("hat_roberta_base", "newly initialised 24 tensors"), ("hierarchical_transformer", "started from RoBERTa: both")],
)
def test_from_roberta(
    arch: str,
    new: str,
    roberta: Path,
    data: Path,
    warm: WarmPython,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["import", "roberta", str(roberta), "--out", str(tmp_path / "model.pt")]) == 0
    flags = next(line for line in capsys.readouterr().out.splitlines() if f"--arch {arch} " in line)
    log = train(warm, data, flags, tmp_path)
    assert new in log and f"Loaded checkpoint {tmp_path / 'model.pt'} (epoch 1 @ 0 updates)" in log
    assert "done training" in log


def test_from_a_released_hierarchical_model(
    data: Path, warm: WarmPython, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = release(tmp_path / "hf")
    assert cli.main(["import", "hierarchical_transformer", str(folder), "--out", str(tmp_path / "model.pt")]) == 0
    flags = next(line for line in capsys.readouterr().out.splitlines() if "--finetune-from-model" in line)
    log = train(warm, data, flags, tmp_path)
    assert "newly initialised" not in log and "done training" in log
    assert f"Loaded checkpoint {tmp_path / 'model.pt'} (epoch 1 @ 0 updates)" in log
