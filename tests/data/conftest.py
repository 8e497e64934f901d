"""Real text for the tests of the data path: AMI meetings, and help pages of LibreOffice in four languages."""

from itertools import islice
from pathlib import Path

import pytest
from byte_level_bpe import write_byte_level_bpe
from sentencepiece_model import tydi_lines, write_model

from hat_fairseq.data.bpe import Bpe, LearnedBpe
from hat_fairseq.data.files import read_json_lines
from hat_fairseq.data.gpt2_bpe import read_gpt2
from hat_fairseq.data.kinds import (
    Choice,
    Document,
    DocumentQuestion,
    LabelledSegments,
    LabelledText,
    LabelledWords,
    PretrainingText,
)
from hat_fairseq.data.record import Annotation, Record
from hat_fairseq.data.records_json import read_records
from hat_fairseq.data.sentencepiece_bpe import SentencePieceBpe

AMI = Path(__file__).resolve().parents[2] / "preprocess" / "ami_data"
SAMPLES = Path(__file__).parents[1] / "samples"


@pytest.fixture(scope="session")
def meetings() -> list[Record]:
    return list(islice(read_records(AMI / "ami.train.jsonl.gz"), 8))


@pytest.fixture(scope="session")
def lines(meetings: list[Record]) -> list[str]:
    """Turns and summary sentences."""
    return [line for meeting in meetings for line in (*(meeting.elements or ()), *(meeting.target or ()))]


@pytest.fixture(scope="session")
def learned_bpe(lines: list[str]) -> LearnedBpe:
    return LearnedBpe.learn(lines, num_codes=800)


@pytest.fixture(scope="session")
def gpt2_files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A small byte-level BPE learned here, in the format of encoder.json and vocab.bpe, without hashes."""
    folder = tmp_path_factory.mktemp("small_gpt2") / "bpe"
    write_byte_level_bpe(folder)
    (folder / "SHA256SUMS").unlink()
    return folder / "encoder.json", folder / "vocab.bpe"


@pytest.fixture(scope="session")
def sentencepiece_bpe(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], pages: list[dict[str, list[str]]]
) -> SentencePieceBpe:
    """A model of meetings, help pages and Wikipedia in 15 languages."""
    help_pages = [line for page in pages for language in page.values() for line in language]
    return SentencePieceBpe(write_model(tmp_path_factory.mktemp("pieces"), [*lines, *help_pages, *tydi_lines()]))


@pytest.fixture(scope="session")
def bpes(learned_bpe: LearnedBpe, gpt2_files: tuple[Path, Path]) -> list[Bpe]:
    """One of words and one of bytes."""
    return [learned_bpe, read_gpt2(*gpt2_files)]


@pytest.fixture(scope="session")
def pages() -> list[dict[str, list[str]]]:
    """Ten help pages, each as lists of corresponding segments in en, de, cs and zh."""
    records = [record for _, record in read_json_lines(SAMPLES / "libreoffice_help.jsonl")]
    return [{name: [s[name] for s in record["segments"]] for name in ("en", "de", "cs", "zh")} for record in records]


@pytest.fixture(scope="session")
def translations(pages: list[dict[str, list[str]]]) -> list[Record]:
    """The pages from English to German."""
    return [
        Document(f"page/{number}", sentences=tuple(page["en"]), target=tuple(page["de"]))
        for number, page in enumerate(pages)
    ]


@pytest.fixture(scope="session")
def questions() -> list[Record]:
    """Questions of Natural Questions with paragraphs of Wikipedia, with several scripts, line breaks, double spaces."""
    return list(read_records(SAMPLES / "natural_questions.jsonl", "qa"))


@pytest.fixture(scope="session")
def examples(pages: list[dict[str, list[str]]], questions: list[Record]) -> dict[str, list[Record]]:
    """Examples of some kinds from the help pages: which language is it, which page is its translation, and so on."""
    texts = [(language, page[language]) for page in pages for language in ("en", "de", "cs")]
    mixed = [[(language, page[language][i]) for i in range(6) for language in ("en", "de")] for page in pages]
    tagged = [[(word, tag(word)) for word in " ".join(page["en"]).split()] for page in pages]
    return {
        "classification": [
            LabelledText(f"p{n}", segments=tuple(lines), second=lines[0] if n % 2 else None, label=f"in {language}")
            for n, (language, lines) in enumerate(texts)
        ],
        "choice": [
            Choice(str(n), segments=tuple(page["en"]), choices=tuple(p["de"][0] for p in pages[:3]), label=n)
            for n, page in enumerate(pages[:3])
        ],
        "segments": [
            LabelledSegments(str(n), tuple(text for _, text in page), labels=tuple(language for language, _ in page))
            for n, page in enumerate(mixed)
        ],
        "tokens": [
            LabelledWords(str(n), tuple(word for word, _ in page), labels=tuple(name for _, name in page))
            for n, page in enumerate(tagged)
        ],
        "document_qa": [document_question(questions, number) for number in range(len(questions))],
        "mlm": [PretrainingText(str(n), text=" ".join(lines)) for n, (_, lines) in enumerate(texts)],
    }


def document_question(questions: list[Record], number: int) -> Record:
    """A question on its own paragraph and those of two others; a short answer, a paragraph, yes or none."""
    record = questions[number]
    place = number % 3
    paragraphs = [questions[(number + step) % len(questions)].parts[1] for step in (1, 2)]
    paragraphs.insert(place, record.parts[1])
    spans = record.answers or () if number % 4 == 0 else ()
    answer = Annotation(None if number % 4 == 3 else place, spans, yes_no="yes" if number % 4 == 2 else None)
    return DocumentQuestion(
        record.id, question=record.parts[0], paragraphs=tuple(map(str, paragraphs)), annotations=(Annotation(), answer)
    )


def tag(word: str) -> str:
    return "<pad>" if not word.isalpha() else "capital letter" if word[0].isupper() else "100 %"
