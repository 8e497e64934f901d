"""Baselines for evidence: cosines of vectors of units that were encoded alone, by three rules, as predictions."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from commands import USER_DIR, hat, read_lines, write_lines
from fine_tuned import spread, write_meetings
from warm import WarmPython

from hat_fairseq.data.records_json import read_records
from hat_fairseq.inference.evidence_baselines import RULES, cosine_baselines
from hat_fairseq.inference.loading import Loaded, load
from hat_fairseq.networks.encoder import Encoder
from hat_fairseq.scoring.baselines import best_of_chunk, first_chunk
from hat_fairseq.scoring.files import write_summaries

QUESTIONS = ["What should it be made of?", "Who presents the prototype?"]


@pytest.fixture(scope="module")
def trained(warm: WarmPython, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `data` and a tiny model after one update."""
    folder = tmp_path_factory.mktemp("baselines")
    write_meetings(folder)
    for split in ("train", "valid", "test"):
        rows = [
            {"id": each["id"], "turns": each["turns"][:60], "questions": QUESTIONS, "evidence": [[1, 2, 40], [5]]}
            for each in read_lines(folder / f"{split}.jsonl")
        ]
        write_lines(folder / "raw" / f"{split}.jsonl", rows)
    flags = f"--out {folder}/data --bpe learned --num-codes 200 --kind evidence"
    warm.run(f"hat_fairseq.cli preprocess {folder}/raw {flags}".split(), folder, folder / "log")
    flags = f"--user-dir {USER_DIR} --task document_evidence --criterion evidence --arch hat_evidence_tiny"
    flags += f" --save-dir {folder}/save --optimizer adam --lr 1e-2 --cpu --batch-size 2 --max-update 1 --num-workers 0"
    flags += " --no-epoch-checkpoints --disable-validation --seed 3"
    warm.run(f"fairseq_cli.train {folder}/data/bin {flags}".split(), folder, folder / "log")
    spread(folder / "save/checkpoint_last.pt")
    return folder


def vector(model: Any, tokens: list[int]) -> torch.Tensor:
    """Of one unit alone, in pieces of 30 tokens and two markers."""
    total = torch.zeros(())
    for begin in range(0, len(tokens), 30):
        row = torch.tensor([[0, *tokens[begin : begin + 30], 2]])
        total = total + Encoder.forward(model.core, row).tokens[0].sum(dim=0)
    return F.normalize(total, dim=0)


def units(loaded: Loaded, record: Any) -> tuple[list[list[int]], list[list[int]]]:
    """The ids of each question and each turn."""
    (row,) = loaded.pipeline.encode(record)
    ids = [loaded.source.ids[token] for token in row.tokens]
    end = ids.index(2)

    def divided(part: list[int]) -> list[list[int]]:
        starts = [place for place, token in enumerate(part) if token == 0] + [len(part)]
        return [part[begin + 1 : stop] for begin, stop in zip(starts, starts[1:], strict=False)]

    return divided(ids[:end]), divided(ids[end + 2 :])


@pytest.mark.slow
@torch.no_grad()
def test_probabilities_are_cosines_of_units_alone(trained: Path) -> None:
    loaded = load(trained / "save/checkpoint_last.pt", trained / "data/bin", "cpu")
    records, valid = (list(read_records(trained / f"data/text/{name}.jsonl", "evidence")) for name in ("test", "valid"))
    found = cosine_baselines(loaded, records, valid)
    assert list(found) == list(RULES)
    for number, record in enumerate(records):
        questions, turns = units(loaded, record)
        sizes = [1 + len(turn) for turn in turns]
        assert sum(sizes) > 600  # two chunks
        a, b = (torch.stack([vector(loaded.models[0], each) for each in part]) for part in (questions, turns))
        scores = (1 + (a @ b.T).numpy()) / 2
        expected = scores, first_chunk(scores, sizes), best_of_chunk(scores, sizes)
        for name, wanted in zip(RULES, expected, strict=True):
            prediction = found[name][number]
            got = [[p for p in each["probabilities"] if p is not None] for each in prediction.questions]
            assert prediction.id == record.id and np.abs(np.array(got) - wanted).max() < 1e-5, name
            for each in prediction.questions:
                chosen = [p for p in each["probabilities"] if p is not None and p >= prediction.threshold]
                assert each["passages"][0]["probability"] == max(chosen)
    kept = cosine_baselines(loaded, records, valid, str(trained / "vectors.npz"))
    assert (trained / "vectors.npz").is_file()
    again = cosine_baselines(loaded, records, valid, str(trained / "vectors.npz"))
    for name in RULES:
        assert [each.to_json() for each in again[name]] == [each.to_json() for each in kept[name]]
        write_summaries(trained / "p.jsonl", (each.to_json() for each in found[name]))
        words = ["--hypotheses", trained / "p.jsonl", "--references", trained / "data/text/test.jsonl"]
        assert hat("score", "evidence", *words, "--bootstrap-samples", 5) == 0
    blind = [record.without_gold() for record in valid]
    with pytest.raises(ValueError, match="has neither evidence nor spans, so no threshold can be chosen on it"):
        cosine_baselines(loaded, records, blind)
    loaded.models = [*loaded.models, *loaded.models]
    with pytest.raises(ValueError, match="is an ensemble; the baselines need one model with the network hat_evidence"):
        cosine_baselines(loaded, records, valid)
