"""Real meetings for the tests of the data path: the AMI corpus that the repository carries."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from hat_fairseq.data.document import Document, read_documents
from hat_fairseq.data.learned_bpe import LearnedBpe

AMI = Path(__file__).resolve().parents[2] / "preprocess" / "ami_data"


@pytest.fixture(scope="session")
def meetings() -> list[Document]:
    return list(islice(read_documents(AMI / "ami.train.jsonl.gz"), 8))


@pytest.fixture(scope="session")
def lines(meetings: list[Document]) -> list[str]:
    """Turns and summary sentences."""
    return [line for meeting in meetings for line in (*(meeting.sentences or ()), *(meeting.target or ()))]


@pytest.fixture(scope="session")
def learned_bpe(lines: list[str]) -> LearnedBpe:
    return LearnedBpe.learn(lines, num_codes=800)


@pytest.fixture(scope="session")
def gpt2_files(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> tuple[Path, Path]:
    """A small byte-level BPE learned here, in the format of encoder.json and vocab.bpe."""
    folder = tmp_path_factory.mktemp("small_gpt2")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        lines, trainers.BpeTrainer(vocab_size=900, initial_alphabet=alphabet, show_progress=False)
    )
    model = json.loads(tokenizer.to_str())["model"]
    (folder / "encoder.json").write_text(json.dumps(model["vocab"]))
    merges = "".join(f"{left} {right}\n" for left, right in model["merges"])
    (folder / "vocab.bpe").write_text("#version: 0.2\n" + merges, encoding="utf-8")
    return folder / "encoder.json", folder / "vocab.bpe"
