"""`hat export`: the folder is the model, for every command, for fairseq and in Python; a changed folder is refused."""

import inspect
import json
import re
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pandas
import pytest
import torch
from commands import USER_DIR, hat, read_lines, refusal, training_words, write_lines
from fine_tuned import spread
from helpers import assert_alike
from huggingface_hub import ModelCard
from safetensors.torch import load_file, save_file
from warm import WarmPython

import hat_fairseq
from hat_fairseq.data.checksums import checksums_of
from hat_fairseq.data.records_json import read_records
from hat_fairseq.inference import DocumentToText
from hat_fairseq.inference.labels import Predictor
from hat_fairseq.inference.loading import load
from hat_fairseq.model_folder import ModelFolder, check_files
from hat_fairseq.networks import build
from hat_fairseq.weights.card import scores_of
from hat_fairseq.weights.names import DEMO

OPTIONS = {"beam": 2, "max_len_b": 8, "min_len": 4}
GENERATION = ["--beam", "2", "--max-len-b", "8", "--min-len", "4"]
TASK = ["--user-dir", str(USER_DIR), "--task", "document_to_text", "--cpu"]


@pytest.fixture(scope="module")
def made(warm: WarmPython, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `data`, `model.pt` after two updates, and its folder `P`; running text, at most 31 tokens."""
    folder = tmp_path_factory.mktemp("made")
    texts = ["The remote is yellow. Who wants a button? Nobody does.", "Good morning. We begin.", "One more. Two. Ten."]
    for split in ("train", "valid", "test"):
        rows = [{"id": f"{split}{n}", "text": text, "target": text[:20]} for n, text in enumerate(texts)]
        write_lines(folder / f"raw/{split}.jsonl", rows)
    flags = "--bpe learned --num-codes 40 --splitter punctuation --max-source-tokens 31 --long-source chunk"
    warm.run(f"hat_fairseq.cli preprocess raw --out data {flags}".split(), folder, folder / "log")
    warm.run(training(folder, folder / "save", 2), folder, folder / "log")
    (folder / "save/checkpoint_last.pt").rename(folder / "model.pt")
    spread(folder / "model.pt")
    texts = folder / "raw/test.jsonl"
    assert hat("score", "rouge", texts, "--references", texts, "--out", folder / "score.json") == 0
    flags = ["--score", f"{folder}/score.json", "--card", '{"license": "mit", "pipeline_tag": "summarization"}']
    export(folder / "model.pt", folder / "data", folder / "P", *flags, *GENERATION)
    return folder


def export(checkpoint: Path, data: Path, out: Path, *flags: str, status: int = 0) -> Path:
    assert hat("export", checkpoint, "--data", data / "bin", "--out", out, *flags) == status
    return out


def training(made: Path, save: Path, updates: int, *flags: object) -> list[str]:
    words = training_words(made / "data/bin", save, "--max-update", updates, "--disable-validation", *flags)
    del words[(role := words.index("--role-stream")) : role + 2]
    return ["fairseq_cli.train", *words]


def test_a_model_is_exported_by_its_name(tmp_path: Path) -> None:
    short = ["--min-len", 1, "--max-len-b", 12]
    assert hat("export", "demo", "--out", tmp_path / "P", *short) == 0
    source = write_lines(tmp_path / "in.jsonl", [{"id": "a", "turns": [{"role": "PM", "text": "So we begin ."}]}])
    texts = []
    for model, flags in (("demo", short), (tmp_path / "P", [])):
        assert hat("generate", model, source, "--out", out := tmp_path / f"{len(texts)}.jsonl", *flags) == 0
        texts.append(read_lines(out))
    assert texts[0] == texts[1]
    assert texts[0][0]["text"]


LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"


@pytest.mark.parametrize("manifest", [True, False])
@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "bin/bpe.codes", "bin/dict.source.txt"])
def test_a_pointer_of_git_lfs_is_named(name: str, manifest: bool, tmp_path: Path) -> None:
    model, text = Path(shutil.copytree(DEMO, tmp_path / "model")), tmp_path / "in.txt"
    (model / name).write_text(LFS)
    text.write_text("So we begin .\n")
    if not manifest:
        (model / "manifest.json").unlink()
    for words in (["generate", model, text, "--out", tmp_path / "o"], ["export", model, "--out", tmp_path / "o"]):
        assert f"{model / name} is a Git LFS pointer, not the file itself: run `git lfs pull`" in refusal(*words)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "model"]


def test_a_checkpoint_that_is_a_pointer_is_named(tmp_path: Path) -> None:
    (checkpoint := tmp_path / "checkpoint_1_2.pt").write_text("/annex/objects/SHA256E-s123--4d7a2146.pt\n")
    with_data = [checkpoint, "--data", DEMO / "bin", "--out", tmp_path / "o"]
    for words in (
        ["export", *with_data],
        ["predict", with_data[0], checkpoint, *with_data[1:-1], tmp_path / "o.jsonl"],
        ["average", tmp_path, "--last", 2, "--out", tmp_path / "o"],
    ):
        assert f"{checkpoint} is a git-annex pointer, not the file itself: run `git annex get`" in refusal(*words)


@pytest.mark.slow
def test_the_folder_moves_and_needs_nothing_else(made: Path, warm: WarmPython, tmp_path: Path) -> None:
    here = Path(shutil.copytree(made, tmp_path / "here"))
    words = f"hat_fairseq.cli generate {{}} {made}/raw/test.jsonl --device cpu"
    checkpoint = [*f"{words.format(here / 'model.pt')} --data {here}/data/bin --out a".split(), *GENERATION]
    warm.run(checkpoint, tmp_path, tmp_path / "log")
    export(here / "model.pt", here / "data", here / "new", *GENERATION)
    moved = Path(shutil.move(here / "new", tmp_path / "moved"))
    shutil.rmtree(here)
    warm.run(f"{words.format(moved)} --out b".split(), tmp_path, tmp_path / "log")
    assert read_lines(tmp_path / "a") == read_lines(tmp_path / "b")
    assert len(read_lines(tmp_path / "a")) == 3
    assert not [path for path in moved.rglob("*") if path.is_file() and str(tmp_path).encode() in path.read_bytes()]


def test_what_is_in_it(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state, tensors = torch.load(made / "model.pt")["model"], load_file(made / "P/model.safetensors")
    own = [name for name in state if not name.endswith("_fingerprint")]
    names = json.loads((made / "P/hat_fairseq.json").read_text())["names"]
    assert [*names] == own
    assert tensors.keys() == {*names.values()}
    assert len(own) == len(tensors) + 2
    assert all(torch.equal(tensors[names[name]], state[name]) for name in own)
    folder = ModelFolder.open(made / "P")
    assert all(torch.equal(tensor, state[name]) for name, tensor in folder.tensors().items())
    built = build(folder.description).state_dict()
    assert [*built] == own
    assert all(built[name].shape == state[name].shape for name in built)
    manifest = json.loads((made / "P/manifest.json").read_text())
    names = ["README.md", "bin/bpe.codes", "bin/dict.source.txt", "bin/dict.target.txt", "bin/pipeline.json"]
    names += ["config.json", "generation_config.json", "hat_fairseq.json", "model.safetensors", "modeling_hat.py"]
    assert list(manifest["files"]) == [*names, "tokenizer_config.json"]
    assert (made / "P/model.safetensors").stat().st_mode == (made / "P/config.json").stat().st_mode
    export(made / "model.pt", made / "data", made / "data", "--overwrite", status=2)
    assert "data exists and is no folder of hat export" in capsys.readouterr().err
    assert json.loads((made / "P/manifest.json").read_text()) == manifest


def test_the_card_says_what_the_hub_reads_and_the_checkpoint_records(made: Path, tmp_path: Path) -> None:
    """Read by the Hub's own library; without `--card`, scores and manifest, what they would say is left out."""
    known = {"library_name": "hat_fairseq", "tags": ["hat_transformer", "document_to_text"]}
    card = ModelCard.load(made / "P/README.md")
    assert card.data.to_dict() == {**known, "license": "mit", "pipeline_tag": "summarization"}
    tensors = load_file(made / "P/model.safetensors").items()
    parameters = sum(tensor.numel() for name, tensor in tensors if not name.endswith("_fingerprint"))
    rows = ("hat_transformer_tiny, document_to_text |", "| updates | 2 |", "raw; documents: train 3, valid 3, test 3 |")
    rows += ("| max source tokens | 31 |", "trained on")
    rows += ("| score | test.jsonl |", "`backend: rouge-score")
    rows += (f"| parameters | {parameters:,} in fp32 |", f"hat_fairseq {hat_fairseq.__version__} |", "--optimizer adam")
    assert [row for row in rows if row not in card.text] == []
    assert str(made) not in card.text
    assert "language" not in card.text, "nobody has said that it is English"
    assert re.search(r"^\| rouge1 \| \d+\.\d\d \[\d+\.\d\d, \d+\.\d\d\] \|$", card.text, re.M)
    shutil.copytree(made / "data/bin", tmp_path / "data/bin")
    other = ModelCard.load(export(made / "model.pt", tmp_path / "data", tmp_path / "P") / "README.md")
    assert other.data.to_dict() == known
    assert not re.search("trained on|Scores|None", other.text)


def test_the_card_shows_the_scores_of_every_metric(tmp_path: Path) -> None:
    files: list[Any] = []
    for name, labels in (("hypotheses", "xx"), ("references", "xy")):
        rows = [{"id": str(i), "label": label, "text": label, "target": label} for i, label in enumerate(labels)]
        files += [*(["--references"] if files else []), write_lines(tmp_path / f"{name}.jsonl", rows)]
    rows = {"classification": "| accuracy | 50.00 [0.00, 100.00] |", "bleu --language en": "| chrF2 | "}
    for metric, row in rows.items():
        assert hat("score", *metric.split(), *files, "--out", tmp_path / "out.json") == 0
        table = scores_of(json.loads((tmp_path / "out.json").read_text()))
        assert table.startswith("| score | hypotheses.jsonl |\n| --- | --- |\n")
        assert row in table
        assert str(tmp_path) not in table
    assert '"other": 1' in scores_of({"other": 1})
    of_both = {f"/data/{name}/test.jsonl": {"scores": {"em": 1.0}, "intervals": {}} for name in ("one", "two")}
    assert scores_of(of_both).startswith("| score | one/test.jsonl | two/test.jsonl |\n")
    answers = {"scores": {"exact": 1.5}, "intervals": {"exact": {"mean": 1.5, "low": 1.0, "high": 2.0}}}
    assert scores_of({"h.jsonl": answers}).endswith("| exact | 1.50 [1.00, 2.00] |\n")
    path = tmp_path / "list.json"
    path.write_text("[1]")
    assert str(path) in refusal("export", "demo", "--out", tmp_path / "P", "--score", path)


@pytest.mark.slow
def test_fairseqs_commands_take_it(made: Path, warm: WarmPython, tmp_path: Path) -> None:
    outputs, data = [], made / "data/bin"
    calls = [("generate", ["--max-len-b", "6"]), ("validate", [])]
    for path in (made / "model.pt", made / "P"):
        text = ""
        for command, flags in calls:
            words = [f"fairseq_cli.{command}", str(data), *TASK, *flags]
            text += warm.run([*words, "--batch-size", "1", "--path", str(path)], tmp_path, tmp_path / "log")
        outputs.append(re.findall(r"^[DH]-.*|\| loss \S+", text, re.M))
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) > 2 * 4
    words = f"hat_fairseq.cli generate {made}/P {data} --out out/test.jsonl --device cpu --beam 2".split()
    warm.run([*words, "--max-len-b", "8", "--min-len", "4"], tmp_path, tmp_path / "log")
    texts = hat_fairseq.load(made / "P", device="cpu").generate(read_lines(made / "raw/test.jsonl"))
    assert [line["text"] for line in read_lines(tmp_path / "out/test.jsonl")] == texts


@pytest.mark.slow
def test_a_training_starts_from_it_and_does_not_go_on(made: Path, warm: WarmPython, tmp_path: Path) -> None:
    def train(status: int, *flags: object) -> str:
        words = training(made, tmp_path / str(len(list(tmp_path.iterdir()))), 1, *flags)
        assert warm.status(words, tmp_path, tmp_path / "log") == status
        return (tmp_path / "log").read_text()

    flag = "--finetune-from-model"
    losses = [re.findall(r'"loss": "[\d.]+"', train(0, flag, made / path)) for path in ("model.pt", "P")]
    assert losses[0] == losses[1]
    assert losses[0]
    assert "P: a folder has no optimizer state to resume" in train(1, "--restore-file", made / "P").splitlines()[-1]
    assert f"{made}: a directory; give the checkpoint in it" in train(1, flag, made).splitlines()[-1]


@pytest.mark.slow
def test_half_is_the_checkpoint_rounded_to_fp16(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    half = export(made / "model.pt", made / "data", tmp_path / "h", "--half")
    lines = read_lines(made / "raw/test.jsonl")
    sizes = [(folder / "model.safetensors").stat().st_size for folder in (half, made / "P")]
    assert 0.5 < sizes[0] / sizes[1] < 0.55
    state = torch.load(made / "model.pt")
    for tensor in filter(torch.is_floating_point, state["model"].values()):
        tensor.copy_(tensor.half())
    torch.save(state, tmp_path / "rounded.pt")
    expected = hat_fairseq.load(tmp_path / "rounded.pt", made / "data/bin", "cpu").generate(lines, **OPTIONS)
    assert (model := hat_fairseq.load(half, device="cpu")).generate(lines, **OPTIONS) == expected
    assert {tensor.dtype for tensor in model.models[0].parameters()} == {torch.float32}
    state["model"]["encoder.embed_tokens.weight"][5, 0] = 1e6
    torch.save(state, tmp_path / "large.pt")
    export(tmp_path / "large.pt", made / "data", tmp_path / "none", "--half", status=2)
    assert "encoder.embed_tokens.weight has values up to 1e+06, too large for fp16" in capsys.readouterr().err


@pytest.mark.slow
def test_texts_in_python(made: Path) -> None:
    model, lines = hat_fairseq.load(made / "P", device="cpu"), read_lines(made / "raw/test.jsonl")
    direct = DocumentToText(load(str(made / "model.pt"), made / "data/bin", "cpu"), **OPTIONS)
    expected = [row["text"] for row in direct.rows(read_records(made / "raw/test.jsonl"))]
    for batch_size in (1, 8):
        assert model.generate([lines[1], lines[2], lines[0]], batch_size) == [expected[i] for i in (1, 2, 0)]
    assert model.generate([line["text"] for line in lines]) == expected
    assert model.generate([]) == []
    assert model.generate(lines, beam=1, max_len_b=5) != expected
    assert len(set(expected)) == 3
    shown = "kind text, hat_transformer, 236,992 parameters, at most 128 tokens, fp32 on cpu)"
    checkpoint = hat_fairseq.load(made / "model.pt", made / "data/bin", "cpu")
    assert repr(model) == f"Model('{made.name}/P', {shown}"
    assert repr(checkpoint).endswith(f"/model.pt', {shown}")
    assert list(inspect.signature(hat_fairseq.load).parameters) == ["path", "data", "device", "precision"]
    assert len(model.generate(["a b", {"id": "1", "text": "b"}, {"id": "4", "text": "b"}, "b"])) == 4
    look = model.look(lines[1], occlusion=True)
    assert (look.document, look.model[-2:], "".join(look.target).strip()) == ("test1", "/P", expected[1])
    assert look.occlusion is not None
    assert len(look.source) == 2
    for call, message in (
        (lambda: model.predict(["a"]), "cannot predict: a model of the kind 'text' can generate and look"),
        (lambda: model.generate("Good morning."), r"give a list of documents: \[document\]"),
        (lambda: model.generate(made), r"give a list of documents: \[document\]"),
        (lambda: model.generate(None), "give a list of documents, not NoneType"),
        (lambda: model.generate([str(made / "model.pt")]), "document 1, '.*model.pt', is the name of a file"),
        (lambda: model.look(str(made / "model.pt")), "document 1, '.*model.pt', is the name of a file"),
        (
            lambda: model.generate(pandas.DataFrame({"text": ["a b"]})),
            r"a table of pandas: give its rows, table.to_dict\('records'\)",
        ),
        (lambda: model.generate(["Good morning.", " "]), "document '2' .* has an empty source"),
        (lambda: model.generate([3]), "document 1: expected a JSON object, found 3"),
        (lambda: model.generate([{"id": "a", "txt": "b"}]), "document 1: unknown key 'txt'"),
        (lambda: model.generate([{"id": "1", "text": text} for text in "ab"]), "two documents have the same id"),
        (lambda: hat_fairseq.load(made / "P", device="abacus"), "^device abacus is unknown; give cpu, cuda or cuda:N"),
        (lambda: hat_fairseq.load(made / "P", device="cuda:99"), "^device cuda:99: torch sees [0-9] GPUs here"),
        (lambda: model.generate(["a b"], beem=2), "unknown generation option 'beem'"),
        (lambda: hat_fairseq.load(made / "model.pt"), "model.pt is no folder of hat export: give the bin directory"),
        (lambda: hat_fairseq.load(made / "none"), "none does not exist"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


WITHOUT = """
import json, sys
import hat_fairseq
from hat_fairseq import cli
P, source, old, checkpoint, out = sys.argv[1:]
assert cli.main(["generate", P, source, "--out", f"{out}/t.jsonl", "--device", "cpu"]) == 0
assert cli.main(["look", P, source, "--out", f"{out}/look.json", "--device", "cpu", "--occlusion"]) == 0
model = hat_fairseq.load(P, device="cpu")
refused = []
for call in (
    lambda: model.generate(["a b"], sampling=True),
    lambda: hat_fairseq.load(old),
    lambda: hat_fairseq.load(checkpoint, "."),
    lambda: hat_fairseq.load(P, "."),
):
    try:
        call()
    except ValueError as error:
        refused.append(str(error))
print(json.dumps([model.generate([json.loads(line) for line in open(source)]), refused]))
"""


@pytest.mark.slow
def test_it_needs_no_fairseq(made: Path, warm: WarmPython, without_fairseq, tmp_path: Path) -> None:
    source, data = made / "raw/test.jsonl", ["--data", f"{made}/data/bin", "--device", "cpu", *GENERATION]
    words = ["hat_fairseq.cli", "generate", f"{made}/model.pt", str(source), "--out", "a", *data]
    warm.run(words, tmp_path, tmp_path / "log")
    words = ["hat_fairseq.cli", "look", f"{made}/P", str(source), "--out", "b", "--occlusion", "--device", "cpu"]
    warm.run(words, tmp_path, tmp_path / "log")
    edit(lambda config: config.pop("network"))(old := Path(shutil.copytree(made / "P", tmp_path / "old")))
    printed = without_fairseq(WITHOUT, made / "P", source, old, made / "model.pt", tmp_path)
    texts, refused = json.loads(printed.splitlines()[-1])
    assert texts == [row["text"] for row in read_lines(tmp_path / "a")]
    assert read_lines(tmp_path / "t.jsonl") == read_lines(tmp_path / "a")
    looks = [json.loads((tmp_path / name).read_text()) for name in ("look.json", "b")]
    assert_alike(*(each | {"model": ""} for each in looks))
    for text, message in zip(
        refused,
        (
            "the generation option sampling needs fairseq, which is not installed",
            "old, a checkpoint or a folder of an earlier version, needs fairseq, which is not installed",
            "model.pt, a checkpoint or a folder of an earlier version, needs fairseq",
            "a folder with . needs fairseq",
        ),
        strict=True,
    ):
        assert message in text


OTHERS = """
import sys
from hat_fairseq import cli
P, checkpoint, out = sys.argv[1:]
sys.stderr = sys.stdout
for words in (
    ["export", P, "--data", f"{P}/bin", "--out", f"{out}/E"],
    ["export", checkpoint, "--data", f"{P}/bin", "--out", f"{out}/E"],
    ["average", checkpoint, checkpoint, "--out", f"{out}/a.pt"],
    ["plan", "ami_small"],
):
    assert cli.main(words) == 2, words
"""


@pytest.mark.slow
def test_other_commands_say_that_they_need_fairseq(made: Path, without_fairseq, tmp_path: Path) -> None:
    lines = without_fairseq(OTHERS, made / "P", made / "model.pt", tmp_path).splitlines()
    for line in lines:
        assert "fairseq" in line, line
        assert "hat_fairseq[train]" in line, line
        assert "HAT_TRACEBACK" not in line, line
    assert len(lines) == 4
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_an_ensemble_and_options_of_fairseqs_loop(made: Path, tmp_path: Path) -> None:
    state = torch.load(shutil.copy(made / "model.pt", tmp_path / "other.pt"))
    for tensor in {t.data_ptr(): t for t in state["model"].values() if t.is_floating_point()}.values():
        tensor.mul_(1.3)
    torch.save(state, tmp_path / "other.pt")
    export(tmp_path / "other.pt", made / "data", tmp_path / "Q")
    lines, data = read_lines(made / "raw/test.jsonl"), made / "data/bin"
    both = hat_fairseq.load(f"{made}/P:{tmp_path}/Q", device="cpu")
    expected = hat_fairseq.load(f"{made}/model.pt:{tmp_path}/other.pt", data, "cpu").generate(lines, **OPTIONS)
    assert both.generate(lines) == expected
    assert both.loaded.task is None
    assert len(hat_fairseq.load(f"{made}/P:{tmp_path}/Q:{made}/P", device="cpu").models) == 3  # one counts twice
    one, checkpoint = hat_fairseq.load(made / "P", device="cpu"), hat_fairseq.load(made / "model.pt", data, "cpu")
    assert expected != one.generate(lines)
    assert (one.loaded.task, bool(checkpoint.loaded.task)) == (None, True)
    diverse = OPTIONS | {"diverse_beam_groups": 2, "diverse_beam_strength": 5.0}
    assert one.generate(lines, **diverse) == checkpoint.generate(lines, **diverse) != one.generate(lines)


@pytest.mark.parametrize("kind", ["classification", pytest.param("document_qa", marks=pytest.mark.slow)])
def test_labels_and_answers(
    fine_tuned, kind: str, without_fairseq, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same from the checkpoint, from the folder, and from the folder where fairseq is not installed."""
    tuned = fine_tuned(kind)
    folder, raw = export(tuned.checkpoint, tuned.data, tmp_path / "P"), tuned.raw / "test.jsonl"
    tag = {"classification": "text-classification", "document_qa": "question-answering"}[kind]
    assert ModelCard.load(folder / "README.md").data.pipeline_tag == tag
    for path, out, data in ((tuned.checkpoint, "a", ["--data", f"{tuned.data}/bin"]), (folder, "b", [])):
        common = ["--details", "--device", "cpu", "--out"]
        assert hat("predict", path, raw, *common, tmp_path / out / "raw/p.jsonl", *data) == 0
        assert hat("predict", path, tuned.data, *common, tmp_path / out / "p.jsonl") == 0
    assert read_lines(tmp_path / "a/p.jsonl") == read_lines(tmp_path / "b/p.jsonl")
    words = ["predict", folder, raw, "--details", "--device", "cpu", "--out", tmp_path / "c/p.jsonl"]
    without_fairseq("import sys; from hat_fairseq import cli; sys.exit(cli.main(sys.argv[1:]))", *words)
    assert read_lines(tmp_path / "a/raw/p.jsonl") == read_lines(tmp_path / "b/raw/p.jsonl")
    assert_alike(read_lines(tmp_path / "a/raw/p.jsonl"), read_lines(tmp_path / "c/p.jsonl"))
    model, lines = hat_fairseq.load(folder, device="cpu"), read_lines(raw)
    direct = Predictor(load(tuned.checkpoint, tuned.data / "bin", "cpu"))
    assert model.predict(lines[::-1], 1)[::-1] == list(direct.predictions(read_records(raw, kind), 1))
    with pytest.raises(ValueError, match=f"a model of the kind '{kind}' can predict and look"):
        model.generate(lines)
    assert model.look(lines[0]).document == lines[0]["id"]
    assert hat("look", folder, raw, "--html", tmp_path / "look.html") == 0
    export(tuned.checkpoint, tuned.data, tmp_path / "Q", *GENERATION, status=2)
    assert "--beam is for models that write texts" in capsys.readouterr().err
    if kind == "classification":
        assert hat("export", folder, "--out", tmp_path / "y") == 0
        files = [checksums_of(each)["sha256"] for each in (folder, tmp_path / "y")]
        assert {name for name in files[0] if files[0][name] != files[1].get(name)} == {"README.md", "manifest.json"}
    (folder / "model.safetensors").write_bytes(b"no weights")
    fit_manifest(folder)
    error = refusal("predict", folder, raw, "--out", tmp_path / "out.jsonl")
    assert f"error: {folder}/model.safetensors is not a complete safetensors file" in error


def edit(change: Callable[[dict[str, Any]], object], name: str = "config.json") -> Callable[[Path], None]:
    """A change of a JSON file; after one of the settings the manifest fits, as an attacker would write it."""

    def write(folder: Path) -> None:
        value = json.loads((folder / name).read_text())
        change(value)
        (folder / name).write_text(json.dumps(value))
        if name != "manifest.json":
            fit_manifest(folder)

    return write


def earlier(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    """A change of a folder of an earlier version, which is loaded by the settings of its training."""

    def write(folder: Path) -> None:
        edit(lambda config: config.pop("network"))(folder)
        edit(change, "hat_fairseq.json")(folder)

    return write


def fit_manifest(folder: Path) -> None:
    """Makes manifest.json that of the files as they are."""
    (folder / "manifest.json").unlink()
    (folder / "manifest.json").write_text(json.dumps(checksums_of(folder)))


def drop_tensor(folder: Path, name: str) -> None:
    tensors = load_file(folder / "model.safetensors")
    del tensors[name]
    save_file(tensors, folder / "model.safetensors")
    fit_manifest(folder)


def test_a_bias_on_the_output_is_refused_unless_it_is_zero(made: Path, tmp_path: Path) -> None:
    """As transformers writes it for its BART."""
    folder = shutil.copytree(made / "P", tmp_path / "P")
    tensors, line = load_file(folder / "model.safetensors"), read_lines(made / "raw/test.jsonl")[:1]
    texts = []
    for value in (0.0, 0.5):
        with pytest.raises(ValueError, match="final_logits_bias is not zero") if value else nullcontext():
            save_file(tensors | {"final_logits_bias": torch.full((1, 5), value)}, folder / "model.safetensors")
            fit_manifest(folder)
            texts.append(hat_fairseq.load(folder, device="cpu").generate(line))
    assert texts == [hat_fairseq.load(made / "P", device="cpu").generate(line)]


def change_byte(path: Path) -> None:
    *content, last = path.read_bytes()
    path.write_bytes(bytes([*content, last ^ 1]))


CODE, DEEP = {"_name": "fconv", "encoder_layers": "open('ran', 'w')"}, json.loads('{"a":' * 200 + "1" + "}" * 200)
REFUSED: list[tuple[str, Callable[[Path], object]]] = [
    ("tensors has changed since", lambda p: change_byte(p / "model.safetensors")),
    ("codes is missing", lambda p: (p / "bin/bpe.codes").unlink()),
    ("x is a link, or not in manifest.json", lambda p: (p / "x").touch()),
    ("is a link", lambda p: (p / "README.md").symlink_to((p / "README.md").rename(p.parent / "y"))),
    ("'../x', which is outside", edit(lambda m: m["files"].update({"../x": 1}), "manifest.json")),
    ("'fconv'", earlier(lambda c: c["cfg"].update(model=CODE))),
    ("its settings have more than 20 levels", earlier(lambda c: c["cfg"]["task"].update(x=DEEP))),
    ("hat_fairseq.json: cfg must be an object", earlier(lambda c: c.update(cfg="${oc.env:HOME}"))),
    ("would fill in the setting '${oc.env:HOME}'", earlier(lambda c: c["cfg"]["task"].update(x="${oc.env:HOME}"))),
    ("unknown key 'x'", edit(lambda c: c.update(x=2), "hat_fairseq.json")),
    ("no model can be built", earlier(lambda c: c["cfg"]["model"].update(__class__="a"))),
    ("no model can be built", earlier(lambda c: c["cfg"]["model"].update(decoder_kv_heads="two"))),
    ("no model can be built", edit(lambda c: c.update(network="fconv"))),
    ("no model can be built", edit(lambda c: c.update(source_vocab_size="two"))),
    ("'x' cannot be tied to", edit(lambda c: c["names"].update(x=["y"]), "hat_fairseq.json")),
    ("is no fingerprint", edit(lambda c: c["fingerprints"].update(x=[1]), "hat_fairseq.json")),
    ("Missing key(s) in state_dict", lambda p: drop_tensor(p, "decoder.layers.0.fc1.bias")),
]
ONE_LINE = "one line with its name, exit 2 (fairseq's commands: 1)"


@pytest.mark.slow
@pytest.mark.fault("Checkpoints", "a folder of hat export with a changed byte", ONE_LINE)
@pytest.mark.fault("Checkpoints", "a folder of hat export without one of its files", ONE_LINE)
@pytest.mark.fault("Checkpoints", "a folder of hat export with another file", ONE_LINE)
@pytest.mark.fault("Checkpoints", "a folder of hat export whose settings have wrong types", ONE_LINE)
@pytest.mark.fault("Security", "a folder of hat export with a link, or with a name outside of it", ONE_LINE)
@pytest.mark.fault("Security", "a folder of hat export whose settings are code", ONE_LINE)
def test_another_folder_is_refused(made: Path, warm: WarmPython, tmp_path: Path) -> None:
    """By `hat`, and the first one by fairseq's commands."""
    for number, (message, change) in enumerate(REFUSED):
        folder = Path(shutil.copytree(made / "P", tmp_path / f"P{number}"))
        change(folder)
        words = ["generate", folder, made / "raw/test.jsonl", "--out", "out.jsonl"]
        commands = [(2, ["hat_fairseq.cli", *words])]
        if number == 0:
            commands.append((1, ["fairseq_cli.generate", made / "data/bin", *TASK, "--path", folder]))
        for status, command in commands:
            assert warm.status([*map(str, command)], tmp_path, tmp_path / "log") == status, message
            text = (tmp_path / "log").read_text()
            (line,) = re.findall("^(?:hat|hat_fairseq): error: .*", text, re.M)
            assert message in line
            assert str(folder) in line
            assert "Traceback" not in text
        (tmp_path / "y").unlink(missing_ok=True)
    assert not {"out.jsonl", "ran"} & {path.name for path in tmp_path.iterdir()}


HEADER = b"\xff{}"  # is no UTF-8
DAMAGED = [  # file, its bytes from its own ones, the message after its name
    ("model.safetensors", lambda own: own[:8] + HEADER + own[8 + len(HEADER) :], "is not a complete safetensors file"),
    ("model.safetensors", lambda own: own[:-7], "is not a complete safetensors file"),
    ("generation_config.json", lambda own: own[:-9], "not a JSON object"),
    ("generation_config.json", lambda own: b'{"num_beams": 4, "a": "\xe9"}', "invalid UTF-8"),
    ("generation_config.json", lambda own: b"[4]", "expected a JSON object"),
    ("generation_config.json", lambda own: b'{"num_beams": "four"}', "beam must be a whole number, not 'four'"),
]


@pytest.mark.slow
@pytest.mark.fault("Checkpoints", "damaged weights or generation_config.json in a folder whose manifest fits", ONE_LINE)
def test_damaged_files_are_named(made: Path, warm: WarmPython, tmp_path: Path) -> None:
    """By every command that reads them."""
    documents = [made / "raw/test.jsonl"]
    for number, (name, change, message) in enumerate(DAMAGED):
        folder = Path(shutil.copytree(made / "P", tmp_path / f"P{number}"))
        (folder / name).write_bytes(change((folder / name).read_bytes()))
        fit_manifest(folder)
        commands = [
            (folder, ["generate", folder, *documents, "--out", "out.jsonl"]),
            (folder, ["look", folder, *documents, "--html", "out.html"]),
            (folder, ["export", folder, "--out", "out"]),
        ]
        if name == "model.safetensors":
            commands += [
                (folder, ["fairseq_cli.generate", made / "data/bin", *TASK, "--path", folder]),
                (folder, ["generate", folder, made / "data/bin", "--out", "texts/test.jsonl"]),
            ]
        for place, words in commands:
            of_fairseq = str(words[0]).startswith("fairseq")
            command = [*map(str, words if of_fairseq else ["hat_fairseq.cli", *words])]
            assert warm.status(command, tmp_path, tmp_path / "log") == (1 if of_fairseq else 2), words
            text = (tmp_path / "log").read_text()
            (line,) = re.findall("^(?:hat|hat_fairseq): error: .*", text, re.M)
            assert f"{place / name}" in line, line
            assert message in line, line
            assert "Traceback" not in text, line
            assert not [*tmp_path.glob("out/**/*.*"), *tmp_path.glob("out.*"), *tmp_path.glob("texts/*")], words


@pytest.mark.parametrize("manifest", [True, False])
@pytest.mark.parametrize(
    "name", ["README.md", "bin/dict.role.txt", "bin/dict.x.txt", "bin/bpe.codes", "bin/x/dict.txt"]
)
def test_an_export_follows_no_links(name: str, manifest: bool, tmp_path: Path) -> None:
    """A folder of somebody else could put private text into the one that is pushed."""
    model, private = Path(shutil.copytree(DEMO, tmp_path / "model")), tmp_path / "private"
    private.write_text("secret 1\n")
    (model / name).parent.mkdir(exist_ok=True)
    (model / name).unlink(missing_ok=True)
    (model / name).symlink_to(private)
    if not manifest:
        (model / "manifest.json").unlink()
    assert f"{model / name} is a link, which is not followed" in refusal("export", model, "--out", tmp_path / "out")
    shutil.copytree(model / "bin", tmp_path / "bin", symlinks=True)
    if name.startswith("bin/"):
        words = ["export", DEMO, "--data", tmp_path / "bin", "--out", tmp_path / "out"]
        assert f"{tmp_path / name} is a link, which is not followed" in refusal(*words)
    assert not (tmp_path / "out").exists()


def test_an_export_copies_the_dictionaries_that_the_task_has_read(tmp_path: Path) -> None:
    assert hat("export", "demo", "--out", model := tmp_path / "model") == 0
    (model / "manifest.json").unlink()
    (model / "bin/mine").mkdir()
    for name in ("dict.extra.txt", "dictionary.txt", "mine/dict.txt"):
        (model / "bin" / name).write_text("secret 1\n")
    assert hat("export", model, "--out", tmp_path / "out") == 0
    names = ["bpe.codes", "dict.role.txt", "dict.source.txt", "dict.target.txt", "pipeline.json"]
    assert sorted(path.name for path in (tmp_path / "out/bin").iterdir()) == names


@pytest.mark.parametrize(("config", "other"), [({"network": "hat_roberta"}, "pipeline.json"), ({"cfg": {}}, "x")])
def test_a_folder_of_0_5_is_refused_by_name(config: dict[str, object], other: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / other).write_text("{}")
    error = refusal("generate", tmp_path, tmp_path / "in.jsonl", "--out", tmp_path / "out.jsonl", "--device", "cpu")
    assert f"{tmp_path} was written by version 0.5: export the checkpoint again" in error


@pytest.mark.parametrize("folder", [DEMO, DEMO.with_name("meeting_model")])
def test_every_packaged_folder_is_what_its_manifest_says(folder: Path) -> None:
    check_files(folder)


def test_what_python_compiles_beside_the_model_is_no_part_of_it(tmp_path: Path) -> None:
    """pip compiles `modeling_hat.py` of the installed model demo."""
    folder = tmp_path / "demo"
    shutil.copytree(
        Path(hat_fairseq.__file__).parent / "demo_model", folder, ignore=shutil.ignore_patterns("__pycache__")
    )
    check_files(folder)
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__/modeling_hat.cpython-311.pyc").write_bytes(b"compiled")
    check_files(folder)
    (folder / "other.pyc").write_bytes(b"compiled")
    with pytest.raises(ValueError, match=r"other\.pyc is a link, or not in manifest\.json"):
        check_files(folder)
