"""Files that somebody else has made: one line with the place and status 2, no hang, no flood of memory, nothing run."""

import contextlib
import gzip
import io
import re
import resource
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from commands import REPOSITORY, environment, run_command, write_lines
from pyarrow import parquet

from hat_fairseq import cli

GIGABYTES = 6 * 2**30
LEARNED = ["--bpe", "learned", "--num-codes", 30]


def fault(name: str, *values: object, area: str = "Security", outcome: str = "file and line, exit 2") -> object:
    """Parameters of a test that are a row of tests/FAULTS.md."""
    return pytest.param(*values, marks=pytest.mark.fault(area, name, outcome), id=name)


def hat(*words: object, expected: int = 2, **options: object) -> str:
    """What `hat` prints to stderr; one line if it fails. With options: in a process that may take six gigabytes."""
    if options:
        command = [sys.executable, "-P", "-m", "hat_fairseq.cli", *words]
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (GIGABYTES, GIGABYTES))  # noqa: E731
        done = run_command(*command, check=False, **{"timeout": 120, "preexec_fn": limit} | options)
        status, stderr = done.returncode, done.stderr
    else:
        with contextlib.redirect_stderr(io.StringIO()) as printed:
            status = cli.main([str(word) for word in words])
        stderr = printed.getvalue()
    assert status == expected, stderr[-3000:]
    assert not expected or stderr.count("\n") == 1, stderr[-3000:]
    return stderr


def folder(path: Path, last: bytes = b"", name: str = "train.jsonl") -> Path:
    """Documents in three splits; `last` is at the end of the training part."""
    for split in ("train", "valid", "test"):
        records = [{"id": f"{split}{n}", "text": f"One two {n}. Three four.", "target": "One two."} for n in range(5)]
        write_lines(path / f"{split}.jsonl", records)
    if name == "train.jsonl":
        last = (path / name).read_bytes() + last
    (path / "train.jsonl").unlink()
    (path / name).write_bytes(last)
    return path


def preprocess(tmp_path: Path, last: bytes, *flags: object, name: str = "train.jsonl", **options: object) -> str:
    words = ["preprocess", folder(tmp_path / "in", last, name), "--out", tmp_path / "out", "--splitter", "punctuation"]
    stderr = hat(*words, *(flags or LEARNED), **options)
    assert (tmp_path / "out").exists() == (options.get("expected") == 0)
    assert len(list(tmp_path.iterdir())) == 1 + (options.get("expected") == 0)
    return stderr


RECORD = '{"id": "a", "target": "One.", %s}\n'
DEEP = "[" * 200_000


@pytest.mark.fault("Security", "a lone surrogate in a text", "becomes U+FFFD, which is counted")
def test_surrogates_in_texts(tmp_path: Path) -> None:
    preprocess(tmp_path, (RECORD % r'"text": "One \ud800 two."').encode(), expected=0)
    assert "\ufffd" in (tmp_path / "out/text/train.source").read_text(encoding="utf-8")
    assert '"lone_surrogates_replaced": 1' in (tmp_path / "out/manifest.json").read_text()


@pytest.mark.fault("Security", "a word of 200,000 equal letters", "BPE codes are learned in seconds")
def test_a_long_word(tmp_path: Path) -> None:
    preprocess(tmp_path, (RECORD % f'"text": "{"a" * 200_000}"').encode(), expected=0)
    decoded = (tmp_path / "out/text/train.source").read_text().replace("@@ ", "")
    assert "a" * 200_000 in decoded


@pytest.mark.slow
@pytest.mark.fault("Security", "a gzip bomb", "refused at 100 MB in one line")
def test_a_gzip_bomb(tmp_path: Path) -> None:
    part = gzip.compress(b'{"id": "' + b"a" * 2**26)  # a file may be several of these
    stderr = preprocess(tmp_path, part * 40, name="train.jsonl.gz", timeout=120)
    assert "train.jsonl.gz:1: the line has more than 100,000,000 bytes" in stderr


@pytest.mark.slow
@pytest.mark.fault("Security", "a Parquet bomb", "refused at 100 MB in one line")
def test_a_parquet_bomb(tmp_path: Path) -> None:
    """600 rows of 101 MB each, which is once in the file."""
    text = pyarrow.DictionaryArray.from_arrays(np.zeros(600, np.int32), ["a" * 101_000_000])
    table = pyarrow.table({"id": [str(n) for n in range(600)], "text": text, "target": ["b"] * 600})
    parquet.write_table(table, tmp_path / "bomb", compression="zstd", dictionary_pagesize_limit=2**30)
    bomb = (tmp_path / "bomb").read_bytes()
    (tmp_path / "bomb").unlink()
    assert len(bomb) < 100_000
    stderr = preprocess(tmp_path, bomb, name="train.parquet", timeout=120)
    assert "train.parquet, row 1: it has more than 100,000,000 bytes; divide it" in stderr


@pytest.mark.slow
@pytest.mark.fault("Security", "too little memory for an input", "one line, exit 2, nothing is left behind")
def test_too_little_memory(tmp_path: Path) -> None:
    little = lambda: resource.setrlimit(resource.RLIMIT_AS, (2**28, 2**28))  # noqa: E731
    record = (RECORD % f'"text": "{"a " * 45_000_000}"').encode()
    assert "out of memory" in preprocess(tmp_path, record, preexec_fn=little)


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("vocabulary")
    hat("preprocess", folder(path / "in"), "--out", path / "out", "--splitter", "punctuation", *LEARNED, expected=0)
    return path / "out/bin"


RECIPES = {
    "gigabytes": ("\n".join(["train:", *(f"  a{n}: &a{n} [{f'*a{n - 1}, ' * 9}]" for n in range(1, 9))]), "not read"),
    "deep": ("train: " + "[" * 100_000, "nested too deeply"),
}


@pytest.mark.slow
@pytest.mark.fault("Security", "recipes with aliases, deep lists, tags", "names the file; a tag is text")
@pytest.mark.fault("Security", "recipes whose values multiply", "one line, exit 2")
def test_recipes(tmp_path: Path) -> None:
    """A copy of the package beside other recipes."""
    shutil.copytree(REPOSITORY / "hat_fairseq", tmp_path / "hat_fairseq", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "configs").mkdir()
    variables = environment(PYTHONPATH=tmp_path, DRY_RUN=1)
    for name, (text, message) in RECIPES.items():
        path = tmp_path / f"configs/{name}.yaml"
        path.write_text(text)
        stderr = hat("recipe", "train", name, env=variables)
        assert str(tmp_path / "configs") in stderr, stderr[:500]
        assert message in stderr, stderr[:500]
    tagged = f"task:\n  data: d\ntrain:\n  arch: !!python/object/apply:os.system ['touch {tmp_path / 'ran'}']\n"
    (tmp_path / "configs/tag.yaml").write_text(tagged)
    hat("recipe", "train", "tag", expected=0, env=variables)
    assert not (tmp_path / "ran").exists()
    flags = [f"  a{number}: '{{a{number + 1}}}{{a{number + 1}}}'\n" for number in range(30)]
    (tmp_path / "configs/values.yaml").write_text(f"task:\n  data: d\ntrain:\n{''.join(flags)}  a30: x\n")
    assert "has more than 100,000 characters" in hat("recipe", "train", "values", env=variables)


SHADOW = "import pathlib\npathlib.Path({!r}).touch()\nraise SystemExit(9)\n"


@pytest.mark.slow
@pytest.mark.fault("Security", "modules called torch, fairseq or json in the current folder", "none is imported")
def test_modules_in_the_current_folder(vocabulary: Path, tmp_path: Path) -> None:
    for name in ("torch", "fairseq", "fairseq_cli", "yaml", "json", "tokenizers", "numpy", "hat_fairseq"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(SHADOW.format(str(tmp_path / "ran")))
    words = ["recipe", "preprocess", "ami_small", "--out", tmp_path / "out", "--limit", 2]
    run_command("hat", *words, cwd=tmp_path)
    run_command("hat", "doctor", cwd=tmp_path)
    (tmp_path / "none.pt").write_bytes(b"PK")
    generate = ["generate", tmp_path / "none.pt", vocabulary, "--out", tmp_path / "results/test.jsonl"]
    stopped = run_command("hat", *generate, cwd=tmp_path, check=False)
    assert stopped.returncode
    assert "none.pt" in stopped.stderr
    assert not (tmp_path / "ran").exists()
    assert (tmp_path / "out/manifest.json").is_file()


@pytest.mark.fault("Security", "control characters for the terminal in documents and messages", "are not printed")
def test_terminals(tmp_path: Path) -> None:
    evil = "\x1b]0;title\x07\x1b[2J\u202e"
    write_lines(tmp_path / "d.jsonl", [{"id": f"a{evil}", "text": evil + "one", "target": evil}])
    write_lines(tmp_path / "h.jsonl", [{"id": f"a{evil}", "text": evil + "\ud800two"}])
    words = ["show", "--documents", tmp_path / "d.jsonl", "--hypotheses", tmp_path / "h.jsonl"]
    shown = run_command("hat", *words).stdout
    assert "one" in shown
    assert "two" in shown
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "\x1b" not in hat("score", "rouge", tmp_path / evil, "--references", tmp_path / "h.jsonl")


def test_nothing_of_the_package_unpacks_or_evaluates() -> None:
    """No archive is unpacked, no text becomes code, and no pickle is read but by readers that list what it may name."""
    pattern = (
        r"\.extract(all)?\(|unpack_archive|(?<![.\w])(eval|exec)\(|shell=True|os\.system|pickle\.loads?\(|allow_pic"
    )
    pattern += r"|weights_only=False|yaml\.(load|unsafe_load)\((?!.*_Loader)|torch\.load\((?!.*weights_only=True)"
    paths = [*(REPOSITORY / "hat_fairseq").rglob("*.py"), *(REPOSITORY / "preprocess").glob("*.py")]
    assert len(paths) > 100
    lines = [f"{path.name}: {line.strip()}" for path in paths for line in path.read_text().splitlines()]
    assert [line for line in lines if re.search(pattern, line) and '"""' not in line and "`" not in line] == []
