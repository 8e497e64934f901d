"""Sequences of symbols: from JSON lines to rows, training, self-pretraining, predictions and scores."""

import json
import random
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import USER_DIR, hat, refusal, write_lines
from fairseq import checkpoint_utils
from helpers import assert_close
from warm import WarmPython

SPLITS = {"train": 24, "valid": 8, "test": 6}
COMMON = (
    f"--user-dir {USER_DIR} --arch hat_roberta_tiny --no-hierarchy --max-positions 40 --cpu --seed 1 --num-workers 0 "
)
COMMON += "--optimizer adam --batch-size 4 --log-format json --no-epoch-checkpoints --dropout 0 --attention-dropout 0 "
LABELS = "--task sequence_classification --criterion document_labels --best-checkpoint-metric accuracy "
LABELS += "--maximize-best-checkpoint-metric "


def record(kind: str, number: int, drawn: random.Random) -> dict[str, Any]:
    """The class is in the first symbol; of a pair, whether the first symbols are the same."""
    label, symbols = number % 2, drawn.choices("abcde", k=drawn.randint(3, 30))
    if kind == "sequence":
        return {"id": str(number), "tokens": ["no" if label else "yes", *symbols], "label": label}
    text = "".join(symbols)
    return {"id": str(number), "text": "x" + text, "second": "xy"[label] + text[4::-1], "label": label}


@pytest.fixture(scope="module")
def data_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.mktemp("sequences")

    @cache
    def build(kind: str) -> Path:
        drawn = random.Random(kind)
        for split, size in SPLITS.items():
            write_lines(folder / kind / f"{split}.jsonl", (record(kind, number, drawn) for number in range(size)))
        out = folder / f"{kind}-data"
        limit = ["--max-source-tokens", "20", "--long-source", "truncate"]
        assert hat("preprocess", folder / kind, "--kind", kind, "--out", out, *limit) == 0
        return out / "bin"

    return build


@pytest.fixture
def run(warm: WarmPython, tmp_path: Path) -> Callable[[str], str]:
    return lambda words: warm.run(words.split(), tmp_path, tmp_path / "log")


LINE = '{"id": "a", "label": "x", %s}'


REFUSED = [
    ("sequence", '"tokens": ["a b"]', "", "document 'a' ({}:1) has the token 'a b'; tokens have no white space"),
    ("sequence", '"tokens": []', "", "document 'a' ({}:1) has an empty sequence; remove it, or drop and count"),
    ("byte_sequence", '"pixels": [0, 256]', "", "has the pixel 256; pixels are numbers from 0 to 255"),
    ("byte_sequence", '"pixels": [1], "text": "a"', "", "give exactly one of text, pixels, not text and pixels"),
    ("byte_pair", '"text": "a"', "", "{}:1: the key 'second' is missing"),
    ("sequence", '"tokens": ["a"]', "--num-codes 9", "--num-codes 9 has no effect with --kind sequence; remove it"),
    ("sequence", '"tokens": ["a"]', "--long-source truncate-sentences", "is not for --kind sequence; choose error"),
    ("byte_sequence", '"text": "abc"', "--max-source-tokens 4", "5 tokens with </s> are more than the limit of 4;"),
]


@pytest.mark.parametrize(("kind", "line", "flags", "message"), REFUSED)
def test_what_is_no_sequence_is_refused(kind: str, line: str, flags: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text(LINE % line)
    error = refusal("preprocess", tmp_path, "--kind", kind, "--out", tmp_path / "out", *flags.split())
    assert message.format(path) in error, line


def test_data_without_training_part_takes_the_vocabulary(data_of: Callable[[str], Path], tmp_path: Path) -> None:
    (tmp_path / "test.jsonl").write_text('{"id": "a", "tokens": ["yes", "new"]}\n')
    command = ["preprocess", tmp_path, "--kind", "sequence", "--out", tmp_path / "out"]
    assert "no train split to learn the dictionary from; use --voc" in refusal(*command)
    assert hat(*command, "--vocabulary", data_of("sequence")) == 0
    treatments = json.loads((tmp_path / "out/manifest.json").read_text())["splits"]["test"]["treatments"]
    assert treatments == {"source_tokens_unknown_to_dictionary": 1}
    other = ["preprocess", tmp_path, "--kind", "text", "--out", tmp_path / "x", "--vocabulary", data_of("sequence")]
    assert "is of data of the kind sequence, which has other tokens than --kind text" in refusal(*other)


@pytest.mark.slow
def test_training_on_pairs_reads_their_rows_together(
    data_of: Callable[[str], Path], run: Callable[[str], str], tmp_path: Path
) -> None:
    """In a batch as alone, and as the head's layers say."""
    data = data_of("byte_pair")
    flags = f"--lr 2e-3 --max-epoch 15 --disable-validation --save-interval 15 --save-dir {tmp_path}"
    text = run(f"fairseq_cli.train {data} {LABELS}{COMMON}{flags}")
    assert float(re.findall(r'"train_accuracy": "([\d.]+)"', text)[-1]) > 90
    path = str(tmp_path / "checkpoint_last.pt")
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([path], {"data": str(data)})
    task.load_dataset("valid")
    dataset, model = task.datasets["valid"], model.eval()
    batch = dataset.collater([dataset[index] for index in range(len(dataset))])
    logits = task.logits(model, batch)
    assert len(batch["target"]) == len(logits) == 8
    assert logits.size(1) == 2
    for index, row in enumerate(logits):
        assert_close(task.logits(model, dataset.collater([dataset[index]]))[0], row)
    rows = dataset[0]["tokens"]
    assert len(rows) == 2
    assert dataset.sizes[0] == 2 * max(map(len, rows))
    (head,) = model.classification_heads.values()
    states = model(**batch["net_input"], features_only=True)[0][:, 0]
    hidden = torch.tanh(head.dense(torch.cat([states[::2], states[1::2]], dim=1)))
    assert hidden.size(1) == 2 * head.dense_2.out_features == 64
    assert_close(logits, head.out_proj(torch.tanh(head.dense_2(hidden))))


@pytest.mark.slow
def test_classification_starts_from_the_pretraining_on_the_same_folder(
    data_of: Callable[[str], Path], run: Callable[[str], str], tmp_path: Path
) -> None:
    """Masked tokens of the rows in `bin/input0`, also of the longest; the dictionaries agree; only the head is new."""
    data = data_of("byte_pair")
    pretraining = "--task masked_document_lm --criterion masked_lm --mask-prob 0.5 --tokens-per-sample 20 --lr 1e-3 "
    pretraining += "--max-positions 20 "
    pretraining += f"--sample-break-mode eos --max-update 4 --save-dir {tmp_path / 'pretrained'}"
    text = run(f"fairseq_cli.train {data / 'input0'} {COMMON}{pretraining}")
    assert "done training" in text
    assert "have invalid sizes" not in text
    start = f"--finetune-from-model {tmp_path / 'pretrained/checkpoint_last.pt'} --lr 0 --max-update 1 "
    start += "--max-positions 20"
    text = run(f"fairseq_cli.train {data} {LABELS}{COMMON}{start} --save-dir {tmp_path / 'tuned'}")
    states = [
        torch.load(tmp_path / f"{n}/checkpoint_last.pt", weights_only=True)["model"] for n in ("pretrained", "tuned")
    ]
    new = {name for name in states[1] if name not in states[0] or not torch.equal(states[0][name], states[1][name])}
    assert new
    assert all(name.startswith("classification_heads.") for name in new)
