"""Real text for the tests of the data path: AMI meetings, and help pages of LibreOffice in four languages."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from hat_fairseq.data.document import Document, read_documents
from hat_fairseq.data.files import read_json_lines
from hat_fairseq.data.learned_bpe import LearnedBpe

AMI = Path(__file__).resolve().parents[2] / "preprocess" / "ami_data"
SAMPLES = Path(__file__).parents[1] / "samples"


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


@pytest.fixture(scope="session")
def pages() -> list[dict[str, list[str]]]:
    """Ten help pages, each as lists of corresponding segments in en, de, cs and zh."""
    records = [record for _, record in read_json_lines(SAMPLES / "libreoffice_help.jsonl")]
    return [{name: [s[name] for s in record["segments"]] for name in ("en", "de", "cs", "zh")} for record in records]


@pytest.fixture(scope="session")
def translations(pages: list[dict[str, list[str]]]) -> list[Document]:
    """The pages from English to German."""
    return [
        Document(f"page/{number}", sentences=tuple(page["en"]), target=tuple(page["de"]))
        for number, page in enumerate(pages)
    ]
