"""Predictions of a recipe's test documents from cosines alone: python cosine_baselines.py RECIPE."""

import json
import sys
from pathlib import Path

import hat_fairseq
from hat_fairseq.data.records_json import read_records
from hat_fairseq.inference.evidence_baselines import cosine_baselines

recipe = sys.argv[1]
data, checkpoints, results = (Path(folder, recipe) for folder in ("data-bin", "checkpoints", "results"))
model = hat_fairseq.load(checkpoints / "checkpoint_best.pt", data=data / "bin", device="cpu")
test, valid = (list(read_records(data / f"text/{split}.jsonl", "evidence")) for split in ("test", "valid"))
names = {"cosine": "alone", "cosine, first 512 tokens": "first_512", "cosine, best of its 512 tokens": "chunk"}
for title, predictions in cosine_baselines(model.loaded, test, valid, str(checkpoints / "vectors.npz")).items():
    lines = "".join(json.dumps(each.to_json(), ensure_ascii=False) + "\n" for each in predictions)
    (results / f"{names[title]}.jsonl").write_text(lines, encoding="utf-8")
