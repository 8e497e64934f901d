"""The side of transformers and the data run where fairseq is not installed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from exported_tokenizer import TEXT, exported
from without_fairseq import ABSENT

from hat_fairseq.data.bpe import LearnedBpe
from hat_fairseq.data.options import Settings
from hat_fairseq.data.pipeline import TextPipeline

pytest.importorskip("transformers", reason="pip install 'hat_fairseq[test]'")

DATA = """
import importlib, pkgutil, sys
import hat_fairseq.data
for module in pkgutil.walk_packages(hat_fairseq.data.__path__, "hat_fairseq.data."):
    importlib.import_module(module.name)
assert "torch" not in sys.modules
"""
TOKENIZE = """
import json, sys
import hat_fairseq.hf
from transformers import AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
rows = tokenizer([sys.argv[2]])["input_ids"]
print(json.dumps([rows, tokenizer.batch_decode(rows)]))
"""
NO_PACKAGE = """
import sys
sys.path = [path for path in sys.path if path != sys.argv[2]]
from transformers import AutoTokenizer
try:
    AutoTokenizer.from_pretrained(sys.argv[1], trust_remote_code=True)
except ImportError as error:
    print(error)
"""


def test_it_is_not_installed(without_fairseq: Callable[..., str]) -> None:
    code = "import importlib.util, sys; print([name for name in sys.argv[1:] if importlib.util.find_spec(name)])"
    assert without_fairseq(code, *ABSENT, "torch", "hat_fairseq") == "['torch', 'hat_fairseq']\n"


def test_data_need_neither_fairseq_nor_torch(without_fairseq: Callable[..., str]) -> None:
    without_fairseq(DATA)


def test_an_exported_tokenizer_gives_the_same_ids(without_fairseq: Callable[..., str], tmp_path: Path) -> None:
    pipeline = TextPipeline(Settings(splitter="punctuation"), LearnedBpe.learn([TEXT] * 3, 60))
    tokenizer, _ = exported(tmp_path, pipeline)
    rows = tokenizer([TEXT])["input_ids"]
    assert json.loads(without_fairseq(TOKENIZE, tmp_path / "out", TEXT)) == [rows, tokenizer.batch_decode(rows)]


def test_without_this_package_it_says_what_to_install(without_fairseq: Callable[..., str], tmp_path: Path) -> None:
    exported(tmp_path, TextPipeline(Settings(), LearnedBpe.learn([TEXT] * 3, 60)))
    repository = Path(__file__).resolve().parents[2]
    assert "Run `pip install hat_fairseq`" in without_fairseq(NO_PACKAGE, tmp_path / "out", repository)
