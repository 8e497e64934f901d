"""A tiny model that finds the turns of a meeting that answer questions, made by the real commands."""

from pathlib import Path
from typing import NamedTuple

from commands import USER_DIR, read_lines, write_lines
from fine_tuned import spread, write_meetings
from warm import WarmPython

QUESTIONS = ["What does the remote cost?", "Who is the project manager?"]


class EvidenceModel(NamedTuple):
    checkpoint: Path
    data: Path  # the bin directory


def train_evidence(folder: Path, warm: WarmPython) -> EvidenceModel:
    """Trains two updates in `folder`; with other weights, so that units differ. `folder/raw` has what it read."""
    write_meetings(folder)
    for split in ("train", "valid", "test"):
        records = []
        for meeting in read_lines(folder / f"{split}.jsonl"):
            turns = meeting["turns"][:30]
            records.append({"id": meeting["id"], "turns": turns, "questions": QUESTIONS, "evidence": [[1, 2], [5]]})
        write_lines(folder / "raw" / f"{split}.jsonl", records)
    flags = f"--out {folder}/data --bpe learned --num-codes 200 --kind evidence"
    warm.run(f"hat_fairseq.cli preprocess {folder}/raw {flags}".split(), folder, folder / "log")
    flags = f"--user-dir {USER_DIR} --task document_evidence --criterion evidence --arch hat_units_tiny"
    flags += f" --save-dir {folder}/save --optimizer adam --lr 1e-2 --cpu --batch-size 2 --max-update 2 --num-workers 0"
    flags += " --no-epoch-checkpoints --disable-validation --seed 3"
    warm.run(f"fairseq_cli.train {folder}/data/bin {flags}".split(), folder, folder / "log")
    spread(folder / "save/checkpoint_last.pt")
    return EvidenceModel(folder / "save/checkpoint_last.pt", folder / "data/bin")
