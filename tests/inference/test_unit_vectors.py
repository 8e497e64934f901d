"""Vectors of the baselines for evidence, by a tiny model: each against its own encoding, and the command with them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from commands import USER_DIR, read_lines, write_lines
from fine_tuned import spread, write_meetings
from vector_rules import MEANS_WITHIN, passages_of, with_cosines
from warm import WarmPython

from hat_fairseq.inference.loading import Loaded, load
from hat_fairseq.networks.encoder import Encoder
from hat_fairseq.units.score import read_evidence

QUESTIONS = ["What should it be made of?", "Who presents the prototype?"]


@pytest.fixture(scope="module")
def trained(warm: WarmPython, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `data` and a tiny model after one update, which reads 510 tokens and two markers together."""
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
    flags = f"--user-dir {USER_DIR} --task document_evidence --criterion evidence --arch hat_units_tiny"
    flags += f" --save-dir {folder}/save --optimizer adam --lr 1e-2 --cpu --batch-size 2 --max-update 1 --num-workers 0"
    flags += " --no-epoch-checkpoints --disable-validation --seed 3"
    warm.run(f"fairseq_cli.train {folder}/data/bin {flags}".split(), folder, folder / "log")
    spread(folder / "save/checkpoint_last.pt")
    return folder


def states(model: Any, tokens: list[int]) -> torch.Tensor:
    """Of one text alone, markers included, in pieces of as many tokens as the model reads together."""
    longest = model.core.longest
    pieces = [tokens[begin : begin + longest] for begin in range(0, max(1, len(tokens)), longest)]
    return torch.cat([Encoder.forward(model.core, torch.tensor([[0, *piece, 2]])).tokens[0] for piece in pieces])


def divided(loaded: Loaded, record: Any) -> tuple[list[list[int]], list[list[int]]]:
    """The ids of each question and each turn."""
    (row,) = loaded.pipeline.encode(record)
    ids = [loaded.source.ids[token] for token in row.tokens]
    end = ids.index(2)

    def units(part: list[int]) -> list[list[int]]:
        starts = [place for place, token in enumerate(part) if token == 0] + [len(part)]
        return [part[begin + 1 : stop] for begin, stop in zip(starts, starts[1:], strict=False)]

    return units(ids[:end]), units(ids[end + 2 :])


def against(questions: list[torch.Tensor], others: list[torch.Tensor]) -> np.ndarray:
    means = [torch.stack([each.mean(dim=0) for each in part]) for part in (questions, others)]
    return np.asarray((F.normalize(means[0], dim=1) @ F.normalize(means[1], dim=1).T).numpy())


@pytest.mark.slow
@torch.no_grad()
def test_cosines_are_those_of_each_text_alone_and_of_windows(trained: Path) -> None:
    loaded = load(trained / "save/checkpoint_last.pt", trained / "data/bin", "cpu")
    references = list(read_evidence(str(trained / "data/text/test.jsonl"))[0].values())
    model = loaded.models[0]
    for reference in with_cosines(loaded, references):
        (asked, turns), cosines = divided(loaded, reference.record), reference.cosines
        tokens = [token for turn in turns for token in turn]
        assert cosines.sizes.tolist() == list(map(len, turns))
        assert len(tokens) > 600  # two chunks
        questions = [states(model, each) for each in asked]
        numbers = [max(0, sum(map(len, turns[: n + 1])) - 1) // 512 for n in range(len(turns))]
        chunks = [
            [token for number, turn in zip(numbers, turns, strict=True) if number == own for token in turn]
            for own in numbers
        ]
        passages = [tokens[begin:end] for begin, end in passages_of(len(tokens))]
        for found, texts in ((cosines.alone, turns), (cosines.chunks, chunks), (cosines.passages, passages)):
            assert np.abs(found - against(questions, [states(model, each) for each in texts])).max() < 1e-5
        (means,) = model.core.encode_in_context([turns])
        flat = means.repeat_interleave(torch.tensor(list(map(len, turns))), dim=0)
        assert list(cosines.nearby) == list(MEANS_WITHIN)
        width, begin = MEANS_WITHIN[0], 0
        windows = []
        for turn in turns:  # the mean of what each token's turn has, of tokens inside the window or the turn
            middle, end = begin + len(turn) / 2, begin + len(turn)
            places = torch.arange(len(tokens)) + 0.5
            inside = (places > min(begin, middle - width)) & (places < max(end, middle + width))
            windows.append(flat[inside])
            begin = end
        assert np.abs(cosines.nearby[width] - against(questions, windows)).max() < 0.02  # tokens at the edge are parts
