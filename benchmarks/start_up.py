#!/usr/bin/env python3
"""Does the plugin slow down the start? A whole `fairseq-generate` on one short document, from a cold process.

    python benchmarks/start_up.py

`hat` loads the plugin with `--user-dir` and runs its task and `hat_transformer_tiny`; `fairseq` runs its own task
`translation` and a `transformer` of the same sizes. Both read the same binarised document of three sentences and
search with beam 4 for exactly 20 tokens. Files are in the system's cache. torch 2.6 and newer refuse fairseq's own
checkpoints; for `fairseq` alone that check is switched off.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness import RESULTS, Facts, Job, Setting, run, run_commands, surroundings

PLUGIN = RESULTS.parents[1] / "hat_fairseq"
SIZES = {"embed-dim": 64, "ffn-embed-dim": 128, "attention-heads": 4, "layers": 2}
SETTINGS: list[dict[str, Any]] = [{"name": "one document, beam {beam}, {tokens} tokens", "beam": 4, "tokens": 20}]
DOCUMENT = {"sentences": ["The meeting began late.", "Nobody minded.", "They talked about a remote control."]}
TRUST = {"hat": {}, "fairseq": {"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}}
# fairseq leaves out the last batch if its size is no multiple of 8, or of this
WHOLE = "--cpu --batch-size 1 --required-batch-size-multiple 1"
KINDS = {
    "hat": ["--user-dir", str(PLUGIN), "--task", "document_to_text"],
    "fairseq": ["--task", "translation"],
}


def build(name: str, setting: Setting) -> Job:
    """Data and a checkpoint after one update; neither is timed."""
    temporary = tempfile.TemporaryDirectory(prefix="start-up-")
    folder = Path(temporary.name)
    write_data(folder)
    run_commands([train_command(name, folder)])
    limits = f"--beam {setting['beam']} --min-len {setting['tokens'] - 1} --max-len-b {setting['tokens'] - 1}"
    data = [str(folder / "data" / "bin"), "--path", str(folder / "checkpoint_last.pt"), *KINDS[name]]
    command = [sys.executable, "-m", "fairseq_cli.generate", *data, *limits.split(), *WHOLE.split()]
    peaks = [0]

    def step() -> Facts:
        peaks.append(run_commands([command], TRUST[name]))
        return {}

    def finish() -> Facts:
        environment = surroundings(TRUST[name])
        words = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
        hypotheses = [line.split("\t")[2].split() for line in words.splitlines() if line.startswith("H-")]
        temporary.cleanup()
        return {"peak_bytes": max(peaks), "documents": len(hypotheses), "lengths": list(map(len, hypotheses))}

    return Job(step, {}, finish)


def write_data(folder: Path) -> None:
    """The same document to train on and to generate from."""
    (folder / "documents").mkdir()
    record = {"id": "one", **DOCUMENT, "target": DOCUMENT["sentences"][::-1]}
    for split in ("train", "valid", "test"):
        (folder / "documents" / f"{split}.jsonl").write_text(json.dumps(record) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "hat_fairseq.cli", "preprocess", folder / "documents", "--num-codes", "60"]
    run_commands([[*map(str, command), "--out", str(folder / "data")]])


def train_command(name: str, folder: Path) -> list[str]:
    arch = ["--arch", "hat_transformer_tiny" if name == "hat" else "transformer", "--share-all-embeddings"]
    sizes = [f"--{side}-{size}={value}" for side in ("encoder", "decoder") for size, value in SIZES.items()]
    training = "--optimizer adam --lr 1e-3 --max-update 1 --disable-validation --dropout 0.1"
    command = [sys.executable, "-m", "fairseq_cli.train", str(folder / "data" / "bin"), *KINDS[name], *arch, *sizes]
    return [*command, *training.split(), *WHOLE.split(), "--save-dir", str(folder)]


def check(setting: Setting, ends: dict[str, Facts]) -> list[str]:
    """One hypothesis of the same length from both; weights are random, so nothing else can be the same."""
    if wrong := [name for name, end in ends.items() if end["lengths"] != [setting["tokens"] - 1]]:
        raise SystemExit(f"{setting['name']}: {', '.join(wrong)} did not generate one hypothesis of that length")
    return [f"one hypothesis of {setting['tokens']} tokens, the final </s> included, from both"]


if __name__ == "__main__":
    run(build, check, contenders=tuple(KINDS), settings=SETTINGS, reference="fairseq", rounds=7)
