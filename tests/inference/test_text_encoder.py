"""Vectors as those of sentence-transformers: pooling, prompts, lengths, arguments, shapes; chunks in context."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import encoders_of_today
import numpy as np
import pytest
import torch
import transformers
from commands import hat, read_lines, refusal, write_lines
from minilm import MINILM, needs_minilm
from sentencepiece_model import tydi_lines
from text_encoders import write_text_encoder
from tokenizers_on_the_spot import MAKERS

import hat_fairseq
from hat_fairseq.weights.vector_settings import VectorSettings

CLS = {"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True}
E5 = {"prompts": {"query": "query: ", "passage": "passage: "}}
BGE = {"prompts": {"query": "Represent this sentence for searching: ", "other": "x "}, "default_prompt_name": "other"}
NOMIC = {"prompts": {"query": "search_query:", "document": "search_document:\n"}, "similarity_fn_name": "dot"}
TEXTS = [
    "It rains.",
    "Zürich is a city!",
    "",
    "what",
    "1. The first: (one)",
    *(" ".join(x.split()) for x in tydi_lines()[:8]),
]


def package(folder: Path, **release: Any) -> Path:
    """The folder that `hat import` makes of a release, which is beside it."""
    write_text_encoder(folder / "release", **release)
    assert hat("import", "bert", folder / "release", "--package", folder / "package") == 0
    return folder / "package"


@pytest.fixture(scope="module")
def e5(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return hat_fairseq.load(package(tmp_path_factory.mktemp("e5"), settings=E5), device="cpu")


@pytest.fixture(scope="module")
def bge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return package(tmp_path_factory.mktemp("bge"), pooling=CLS, settings=BGE)


RELEASES: dict[str, dict[str, Any]] = {
    "mean": {},
    "cls": {"pooling": CLS, "settings": BGE},
    "not scaled": {"modules": ("Transformer", "Pooling"), "settings": NOMIC},
    "new files": {"old": False, "pooling": {"pooling_mode": "cls", "include_prompt": True}, "settings": E5},
    "new files, mean": {"old": False, "settings": {"prompts": {"corpus": "corpus: "}, "similarity_fn_name": None}},
    "own length": {"lengths": {"do_lower_case": True}, "settings": E5},
    "euclidean": {"settings": {"similarity_fn_name": "euclidean"}},
    "manhattan": {"settings": {"similarity_fn_name": "manhattan"}},
} | {name: {"tokenizer": name, "settings": E5} for name in MAKERS}


@pytest.mark.slow
@pytest.mark.parametrize("name", RELEASES)
def test_vectors_are_those_of_sentence_transformers(name: str, tmp_path: Path) -> None:
    library = pytest.importorskip("sentence_transformers", reason="pip install 'hat_fairseq[minilm]'")
    ours = hat_fairseq.load(package(tmp_path, **RELEASES[name]), device="cpu").encoder()
    theirs = library.SentenceTransformer(str(tmp_path / "release"), device="cpu")
    assert (ours.max_seq_length, ours.similarity_fn_name) == (theirs.max_seq_length, theirs.similarity_fn_name)
    assert ours.prompts == {key: text for key, text in theirs.prompts.items() if text}
    assert ours.default_prompt_name == theirs.default_prompt_name
    # Version 6.2 takes an empty prompt before its documented ones, passage and corpus, which models state.
    document = next((ours.prompts[key] for key in ("document", "passage", "corpus") if key in ours.prompts), "")
    assert ours.get_embedding_dimension() == theirs.get_embedding_dimension()
    for method in ("encode", "encode_query", "encode_document"):
        for options in (
            {},
            {"normalize_embeddings": True, "batch_size": 3},
            {"convert_to_tensor": True, "truncate_dim": None},
            {"convert_to_numpy": False, "show_progress_bar": False},
            {"prompt": "Find it: "},
            {"prompt": "", "prompt_name": "query"} if ours.prompts else {},
        ):
            found = getattr(ours, method)(TEXTS, **options)
            if method == "encode_document" and "prompt" not in options:
                options = options | {"prompt": document}
            expected = getattr(theirs, method)(TEXTS, **options)
            assert type(found) is type(expected)
            assert len(found) == len(expected)
            for one, other in zip(found, expected, strict=True):
                assert type(one) is type(other)
                assert one.dtype == other.dtype
                assert one.shape == other.shape
                assert np.abs(np.asarray(one) - np.asarray(other)).max() < 1e-5, (method, options)
        options = {"prompt": document} if method == "encode_document" else {}
        one, other = getattr(ours, method)(TEXTS[0]), getattr(theirs, method)(TEXTS[0], **options)
        assert one.shape == other.shape
        assert np.abs(one - other).max() < 1e-5
        vectors = ours.encode(TEXTS)
        for pairs in ("similarity", "similarity_pairwise"):
            one, other = (getattr(each, pairs)(vectors[:4], vectors[4:8]) for each in (ours, theirs))
            assert one.shape == other.shape
            assert np.abs(one - other).max() < 1e-3


@pytest.mark.slow
@needs_minilm
def test_minilm_truncates_where_sentence_transformers_does(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    library = pytest.importorskip("sentence_transformers", reason="pip install 'hat_fairseq[minilm]'")
    assert hat("import", "minilm", "--package", tmp_path / "package") == 0
    texts = ["One two.", " ".join(["word"] * 400)]
    model = hat_fairseq.load(tmp_path / "package", device="cpu")
    assert np.abs(model.encode_query(texts) - library.SentenceTransformer(str(MINILM)).encode(texts)).max() < 1e-5
    assert "texts truncated: 1, tokens truncated: 146" in caplog.text


def ndcg(queries: np.ndarray, corpus: np.ndarray, right: list[set[int]], top: int) -> float:
    """The definition of Järvelin and Kekäläinen (2002) with binary relevance."""
    values = []
    for scores, own in zip(queries @ corpus.T, right, strict=True):
        order = sorted(range(len(corpus)), key=lambda number: -scores[number])[:top]
        gained = sum(1 / np.log2(rank + 2) for rank, number in enumerate(order) if number in own)
        values.append(gained / sum(1 / np.log2(rank + 2) for rank in range(min(top, len(own)))))
    return float(np.mean(values))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mean", "cls", "not scaled"])
def test_in_an_evaluator_of_sentence_transformers(name: str, tmp_path: Path) -> None:
    library = pytest.importorskip("sentence_transformers", reason="pip install 'hat_fairseq[minilm]'")
    from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator

    model = hat_fairseq.load(package(tmp_path, **RELEASES[name]), device="cpu")
    texts = [" ".join(line.split()) for line in tydi_lines()[:30]]
    corpus = {str(number): text for number, text in enumerate(texts)}
    queries = {f"q{number}": text[: len(text) // 2] for number, text in enumerate(texts[::3])}
    right = {f"q{number}": {str(3 * number), str(number)} for number in range(len(queries))}
    evaluator = InformationRetrievalEvaluator(queries, corpus, right, name="small", write_csv=False)
    found = evaluator(model.encoder())
    expected = evaluator(library.SentenceTransformer(str(tmp_path / "release"), device="cpu"))
    assert found == pytest.approx(expected, abs=1e-6)
    assert evaluator.primary_metric in found
    if model.encoder().similarity_fn_name == "cosine":
        vectors = [
            model.encode_query([*queries.values()], normalize_embeddings=True),
            model.encode_document(texts, normalize_embeddings=True),
        ]
        numbers = [set(map(int, each)) for each in right.values()]
        assert ndcg(*vectors, numbers, 10) == pytest.approx(found["small_cosine_ndcg@10"], abs=1e-6)


CHUNKS = [["It rains.", "Zürich is a city!"], [], ["One."], [" ".join(["two"] * 50)] * 3]


@pytest.mark.parametrize("context", [0, 7, 10**6])
def test_chunks_know_their_document(context: int, e5: Any) -> None:
    found = e5.encode_document(CHUNKS, context=context)
    documents = [{"segments": chunks} for chunks in CHUNKS if chunks]
    expected = iter(e5.embed(documents, context=context))
    assert [each.shape for each in found] == [(2, 24), (0, 24), (1, 24), (3, 24)]
    for vectors, chunks in zip(found, CHUNKS, strict=True):
        if chunks:
            assert np.abs(vectors - next(expected).vectors).max() < 1e-6
    tensors = e5.encoder(context).encode_document([tuple(each) for each in CHUNKS], convert_to_tensor=True)
    assert all(torch.equal(one, torch.from_numpy(other)) for one, other in zip(tensors, found, strict=True))
    other = e5.encode_document(CHUNKS, context=context, prompt="")
    assert np.abs(other[0] - found[0]).max() > 1e-3


def test_the_tokens_of_a_prompt_are_context_alone(e5: Any) -> None:
    """By hand, from the states of one chunk: `<s> prompt text </s>`."""
    ids, bpe = e5.loaded.source.ids, e5.pipeline.bpe
    prompt, chunks = bpe.encode("passage:"), [bpe.encode(text) for text in CHUNKS[0]]
    with torch.no_grad():
        row = torch.tensor([[0, *(ids[token] for token in [*prompt, *chunks[0], *chunks[1]]), 2]])
        states = e5.models[0].encode(row).tokens[0]
    parts = states[1 + len(prompt) : -1].split(list(map(len, chunks)))
    expected = torch.nn.functional.normalize(torch.stack([part.mean(0) for part in parts]), dim=1)
    (found,) = e5.encode_document(CHUNKS[:1], context=0)
    assert np.abs(found - expected.numpy()).max() < 1e-6


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"precision": "int8"}, "encode_document: precision='int8' is not computed"),
        ({"truncate_dim": 8}, "truncate_dim=8 is not computed"),
        ({"output_value": "token_embeddings"}, "output_value='token_embeddings' is not"),
        ({"device": "cuda:1"}, "device='cuda:1' is not"),
        ({"task": "query"}, "task='query' is not"),
        ({"batch_size": 0}, "batch_size must be at least 1, not 0"),
        ({"prompt_name": "none"}, "no prompt is called 'none'; the model has: query, passage"),
        ({"inputs": [["a"]], "prompt": "glue"}, "the prompt 'glue' must end with a space"),
        ({"inputs": [["a"]], "prompt": "very " * 60}, "the prompt has"),
        ({"context": -1}, "context must be at least 0"),
        ({"inputs": [["a"], "b"]}, "document 2 is no list of chunks"),
        ({"inputs": [["a", " "]]}, "chunk 2 of document 1 has no text"),
        ({"inputs": ["a", 3]}, "text 2 is no string"),
        ({"inputs": 3}, "not int"),
    ],
)
def test_what_is_refused_is_named(arguments: dict[str, Any], words: str, e5: Any) -> None:
    with pytest.raises(ValueError, match="^.*" + words.replace("(", r"\(").replace("[", r"\[")):
        e5.encode_document(**{"inputs": ["One."], **arguments})


def test_nothing_to_encode(e5: Any) -> None:
    assert e5.encode_query([]).shape[0] == 0
    assert e5.encode_document([]) is not None
    assert e5.encoder().encode([], convert_to_tensor=True).shape[0] == 0


def test_prompts_on_the_command_line(e5: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = ["It rains.", "Zürich is a city!"]
    source = write_lines(tmp_path / "in.jsonl", [{"id": str(n), "segments": [text]} for n, text in enumerate(texts)])
    encoder = e5.encoder()
    for flags, prompt in (
        ([], "passage: "),
        (["--queries"], "query: "),
        (["--query-prompt", "Which? "], "Which? "),
        (["--document-prompt", ""], ""),
    ):
        out = tmp_path / f"out{len(flags)}{len(prompt)}.jsonl"
        assert hat("embed", e5.path, source, "--out", out, "--device", "cpu", *flags) == 0
        whose = f", which {e5.path} has," if flags in ([], ["--queries"]) else ""
        assert (f"prompt: {prompt!r}{whose} before each text" in capsys.readouterr().err) == bool(prompt)
        vectors = np.array([line["vector"] for line in read_lines(out)])
        assert np.abs(vectors - encoder.encode(texts, prompt=prompt)).max() < 1e-5
    for flags in (["--queries", "--query-prompt", "a "], ["--document-prompt", "a ", "--query-prompt", "b "]):
        assert "--queries, --query-prompt and --document-prompt contradict each other" in refusal(
            "embed", e5.path, source, "--out", tmp_path / "no.jsonl", *flags
        )
    (tmp_path / "none").mkdir()
    plain = package(tmp_path / "none")
    error = refusal("embed", plain, source, "--out", tmp_path / "no.jsonl", "--queries")
    assert "--queries has no effect: the model has no prompt for queries" in error
    (found,) = e5.embed([{"segments": texts}], alone=True, queries=True)
    assert np.abs(found.vectors - e5.encode_query(texts)).max() < 1e-5
    with pytest.raises(ValueError, match="queries, query_prompt and document_prompt contradict each other"):
        e5.embed(texts, queries=True, document_prompt="a ")


def test_a_prompt_before_each_row_of_a_long_document(e5: Any) -> None:
    """Rows are shorter by the prompt, and the vector of a document is the mean of all its rows."""
    sentences = ["Sentence " + "very " * (3 + number % 5) + "long." for number in range(20)]
    plain, prompted = (e5.embed([{"segments": sentences}], document_prompt=text)[0] for text in ("", "passage: "))
    assert plain.spans == prompted.spans
    assert np.abs(plain.vectors - prompted.vectors).min() > 0
    (found,) = e5.embed([{"segments": sentences}], of="document")
    assert found.vectors.shape == (1, 24)
    assert np.isfinite(found.vectors).all()


def test_the_state_of_cls(bge: Path, tmp_path: Path) -> None:
    model = hat_fairseq.load(bge, device="cpu")
    texts = ["It rains.", "Zürich is a city!"]
    expected = model.encode_document(texts)
    (alone,) = model.embed([{"segments": texts}], alone=True)
    assert np.abs(alone.vectors - expected).max() < 1e-5
    whole = model.embed([{"segments": [text]} for text in texts], of="document")
    assert np.abs(np.concatenate([each.vectors for each in whole]) - expected).max() < 1e-5
    (mean,) = model.embed([{"segments": texts}], pooling="mean", context=3)
    assert np.abs(mean.vectors - expected).max() > 1e-3
    source = write_lines(tmp_path / "in.jsonl", [{"id": "a", "segments": texts}])
    for flags, words in (
        ([], "the state of [CLS], of which a document has one: give --alone, --of document or --pooling mean"),
        (["--context", 3], "--context averages tokens, and vectors of"),
    ):
        error = refusal("embed", bge, source, "--out", tmp_path / "a.jsonl", *flags)
        assert words in error
        assert error.count("\n") == 1
        assert not (tmp_path / "a.jsonl").exists()
    with pytest.raises(ValueError, match="remove context, or pooling="):
        model.encode_document([texts])


@pytest.mark.parametrize(
    "release, words",
    [
        (
            {"modules": ("Transformer", "Pooling", "Dense", "Normalize")},
            "the modules Transformer, Pooling, Dense, Norm",
        ),
        ({"modules": ("Transformer", "Normalize")}, "the modules Transformer, Normalize"),
        ({"pooling": {"pooling_mode_cls_token": True}}, "the pooling mean + cls is none of mean, cls"),
        ({"pooling": {"pooling_mode": "max"}, "old": False}, "the pooling max is none of mean, cls"),
        ({"pooling": {"pooling_mode": ["mean", "cls"]}, "old": False}, "the pooling mean + cls is none of"),
        ({"pooling": {"pooling_mode_lasttoken": True, "pooling_mode_mean_tokens": False}}, "the pooling last"),
        ({"pooling": {"include_prompt": False}}, "include_prompt is false"),
        ({"settings": {"truncate_dim": 12}}, "truncate_dim 12"),
        ({"settings": {"similarity_fn_name": "maxsim"}}, "similarity_fn_name 'maxsim'"),
        ({"settings": {"prompts": ["query: "]}}, "prompts must be texts by their names"),
        ({"settings": {"default_prompt_name": "query"}}, "default_prompt_name 'query' is none"),
        ({"tokenizer": "cased WordPiece", "lengths": {"do_lower_case": True}}, "do_lower_case: the tokenizer keeps"),
    ],
)
def test_what_no_folder_can_say(release: dict[str, Any], words: str, tmp_path: Path) -> None:
    write_text_encoder(tmp_path / "release", **release)
    error = refusal("import", "bert", tmp_path / "release", "--package", tmp_path / "package")
    assert words in error
    assert error.count("\n") == 1
    assert not (tmp_path / "package").exists()
    assert hat("import", "bert", tmp_path / "release", "--out", tmp_path / "start/model.pt") == 0  # for a training


@pytest.mark.slow
def test_the_settings_stay_when_a_folder_is_written_anew(bge: Path, tmp_path: Path) -> None:
    assert hat("export", bge, "--out", tmp_path / "half", "--half") == 0
    settings = VectorSettings.read(tmp_path / "half")
    assert settings == VectorSettings.read(bge)
    assert settings.pooling == "marker"
    assert settings.longest == 32
    assert "embedding.json" in json.loads((tmp_path / "half/manifest.json").read_text())["files"]


def test_a_folder_without_modules(tmp_path: Path) -> None:
    """As sentence-transformers takes it: the mean, not scaled, as many tokens as the model reads."""
    write_text_encoder(tmp_path / "release")
    for name in ("modules.json", "sentence_bert_config.json"):
        (tmp_path / "release" / name).unlink()
    assert hat("import", "bert", tmp_path / "release", "--package", tmp_path / "package") == 0
    settings = VectorSettings.read(tmp_path / "package")
    assert replace(settings, compared="") == VectorSettings("mean", False, None)
    assert settings.compared.startswith("ids of ")


TURNS = [("Ada", "It rains."), ("Bob", "Zürich is a city!"), ("Ada", "It rains again.")]
VTT = "WEBVTT\n\n" + "".join(
    f"00:0{n}.000 --> 00:0{n}.900\n<v {name}>{text}</v>\n\n" for n, (name, text) in enumerate(TURNS)
)
TEXT = "".join(f"{name}: {text}\n" for name, text in TURNS)
SRT = "".join(f"{n + 1}\n00:00:0{n},000 --> 00:00:0{n},900\n{name}: {text}\n\n" for n, (name, text) in enumerate(TURNS))
FILES = {
    "a.vtt": VTT,
    "a.txt": TEXT,
    "a.srt": SRT,
    "a.jsonl": json.dumps({"id": "a", "turns": [{"speaker": name, "text": text} for name, text in TURNS]}) + "\n",
    "a.json": json.dumps([{"id": "a", "turns": [{"role": name, "text": text} for name, text in TURNS]}]),
}


@pytest.mark.parametrize("flags", [[], ["--context", 5], ["--alone"]])
@pytest.mark.parametrize("name", FILES)
def test_turns_have_a_vector_each(name: str, flags: list[Any], e5: Any, tmp_path: Path) -> None:
    (tmp_path / name).write_text(FILES[name], encoding="utf-8")
    assert hat("embed", e5.path, tmp_path / name, "--out", tmp_path / "out.jsonl", "--device", "cpu", *flags) == 0
    lines, texts = read_lines(tmp_path / "out.jsonl"), [text for _, text in TURNS]
    assert [line["text"] for line in lines] == texts
    joined = "\n".join(texts)
    assert [joined[line["begin"] : line["end"]] for line in lines] == texts
    (expected,) = e5.embed([{"segments": texts}], alone="--alone" in flags, context=5 if "--context" in flags else None)
    assert np.abs(np.array([line["vector"] for line in lines]) - expected.vectors).max() < 1e-6


def test_a_text_without_names_is_running_text(e5: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("It rains. Zürich is a city!\n\nSubject: a letter of one name.\n", encoding="utf-8")
    assert hat("embed", e5.path, tmp_path / "a.txt", "--out", tmp_path / "out.jsonl", "--device", "cpu") == 0
    texts = [line["text"] for line in read_lines(tmp_path / "out.jsonl")]
    assert texts == ["It rains.", "Zürich is a city!", "Subject: a letter of one name."]


@torch.no_grad()
def test_white_space_is_as_it_is_given(tmp_path: Path) -> None:
    """Byte-level encoders have tokens for line breaks, tabs and indents."""
    encoders_of_today.write("ModernBERT-base", tmp_path / "release")
    assert hat("import", tmp_path / "release", "--package", tmp_path / "package") == 0
    peer = transformers.AutoModel.from_pretrained(tmp_path / "release").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "release")

    def mean(text: str) -> np.ndarray:
        return peer(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(dim=0).numpy()

    texts = ["def f(x):\n    return  x\n", "a\tb\r\nc", " one\n\n  two", "It rains."]
    model = hat_fairseq.load(str(tmp_path / "package"), device="cpu")
    vectors = model.encode_document(texts)
    assert np.abs(vectors - [mean(text) for text in texts]).max() < 1e-5
    for record in ({"segments": texts}, {"text": "One  sentence\nhere. And\tanother one."}):
        (embedded,) = model.embed([record], alone=True, raw=True)
        assert np.abs(embedded.vectors - [mean(text) for text in embedded.texts]).max() < 1e-5
