"""`hat preprocess` says which targets come back changed when tokens become text; real commands on real files."""

import json
import re
from pathlib import Path

import pytest
from commands import write_lines
from sacrebleu.metrics import BLEU

from hat_fairseq import cli
from hat_fairseq.data import blocks
from hat_fairseq.data.pipeline import TextPipeline

CHANGED, SCORE = "target segments that come back changed", "BLEU of what comes back"
# Spaces that nothing in the words tells: before a full stop, around brackets and a plus sign.
TARGETS = [
    ["Ouvrez le fichier .", "Cliquez sur « Enregistrer » : c'est fini !"],
    ["Appuyez sur Maj+F8 pour l'arrêter.", "Qu'est-ce que c'est ?", "La fonction Cos(x) en est une."],
    ["L'été, il n'y a personne d'autre ici."],
    ["Aujourd'hui, l'un d'eux est parti (à 10 h).", "Tapez ?123 dans le champ."],
]
LOST = 4


def preprocess(folder: Path, name: str, *flags: str, targets: list[list[str]] = TARGETS) -> Path:
    rows = [
        {"id": str(number), "sentences": [f"s {number} {each}" for each in range(len(target))], "target": target}
        for number, target in enumerate(targets)
    ]
    if not (folder / "raw").exists():
        write_lines(folder / "raw/train.jsonl", rows)
        write_lines(folder / "raw/test.jsonl", rows[:2])
    out = folder / name
    words = f"preprocess {folder / 'raw'} --out {out} --num-codes 60 --aligned --target-separator"
    assert cli.main([*words.split(), *flags]) == 0
    return out


def table_rows(printed: str) -> dict[str, list[str]]:
    """The cells of both rows; nothing where they are not printed."""
    rows = (re.split(r"  +", line.strip()) for line in printed.splitlines())
    return {name: cells for name, *cells in rows if name in (CHANGED, SCORE)}


def test_the_table_counts_what_comes_back_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = preprocess(tmp_path, "fr", "--target-language", "fr", "--target-tokenizer", "moses")
    rows = {
        name: [cell.strip() for cell in cells if cell] for name, cells in table_rows(capsys.readouterr().out).items()
    }

    # What generation would print for the very tokens of the targets.
    pipeline = TextPipeline.load(out / "bin")
    lines = (out / "text/train.target").read_text(encoding="utf-8").splitlines()
    back = [pipeline.decode(line).split("\t") for line in lines]
    pairs = zip(TARGETS, back, strict=True)
    changed = sum(text != other for one, two in pairs for text, other in zip(one, two, strict=True))
    score = BLEU().corpus_score([" ".join(each) for each in back], [[" ".join(each) for each in TARGETS]]).score
    assert changed == LOST
    assert rows[CHANGED] == [f"{LOST} of 8", "3 of 5"]
    assert rows[SCORE][0] == f"{score:.2f}"
    figures = json.loads((out / "manifest.json").read_text())["splits"]["train"]["round_trip"]
    assert figures == {"segments": 8, "changed": LOST, "bleu": round(score, 2)}


def test_the_rows_are_there_only_with_a_word_tokenizer_of_the_target(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    preprocess(tmp_path, "none", "--source-tokenizer", "moses", "--target-language", "fr")
    assert not table_rows(capsys.readouterr().out)


@pytest.mark.slow
def test_the_figures_do_not_depend_on_workers_or_blocks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    printed, targets = [], TARGETS * 12
    for size, workers in ((1 << 20, "1"), (1, "1"), (200, "3")):
        monkeypatch.setattr(blocks, "SIZE", size)
        flags = ["--target-language", "fr-CA", "--target-tokenizer", "moses", "--workers", workers]
        preprocess(tmp_path, f"{size}-{workers}", *flags, targets=targets)
        printed.append(table_rows(capsys.readouterr().out))
    assert printed[0]
    assert printed[0] == printed[1] == printed[2]
