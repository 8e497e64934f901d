"""Recipes that generate, from the raw release to a score: their commands on tiny releases of real text, small models.

Recipes that start from BART start from a small random one in BART's layout, with a byte-level BPE learned here; those
that start from the HAT of CNN/DailyMail start from what the recipe cnn_dm has left here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import torch
from building import Vocabulary, build
from byte_level_bpe import write_byte_level_bpe
from releases import write_release
from warm import WarmPython

from hat_fairseq.package_files import bare_checkpoint
from hat_fairseq.recipes import command as recipes
from hat_fairseq.recipes import files
from preprocess import parallel_containers

pytestmark = pytest.mark.slow
SIZES = "--encoder-layers 1 --decoder-layers 1 --encoder-embed-dim 32 --decoder-embed-dim 32 "
SIZES += "--encoder-ffn-embed-dim 48 --decoder-ffn-embed-dim 48 --encoder-attention-heads 4 --decoder-attention-heads 4"
POOLED = ["--encoder-attention-layers", "0", "--attention-window", "16", "--pooling-window", "64"]  # one layer of one
TRAIN = f"{SIZES} --max-update 2 --cpu --gpus 1 --num-workers 0 --validate-interval 1 --save-interval 1"
GENERATE = "--cpu --num-workers 0 --beam 1 --min-len 2 --max-len-b 12"
CARRIED = {"ami", "icsi", "ami_small", "ami_small_long"}
# The recipes for fewer tokens differ from these in one number.
POOLING = {"poolingformer_arxiv_16k", "hat_pooling_pubmed_16k"}
POOLED_ENCODERS = {*POOLING, "ami_small_long"}
FROM_BART = {"pubmed", "arxiv", "cnn_dm", "xsum", *POOLING}
CHAINED = {"samsum", "ami", "icsi"}
DATA = {name: name.removesuffix("_16k").rpartition("_")[2] if name in POOLING else name for name in FROM_BART}
WRITERS = {name: partial(write_release, DATA.get(name, name)) for name in (*FROM_BART, "samsum")}
WRITERS |= parallel_containers.WRITERS


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory in which all commands run, with bpe/ and bart.large/ in it."""
    folder = tmp_path_factory.mktemp("recipes")
    words = write_byte_level_bpe(folder / "bpe")
    vocabulary = Vocabulary(words + 5, mask=True)
    positions = {"max_source_positions": 1024, "max_target_positions": 1024}
    bart = build("hat_bart_base", f"{SIZES} --no-hierarchy", vocabulary, seed=7, **positions)
    state = {name: tensor for name, tensor in bart.state_dict().items() if not name.endswith("_fingerprint")}
    (folder / "bart.large").mkdir()
    torch.save(bare_checkpoint(state), folder / "bart.large/model.pt")
    return folder


@pytest.fixture(scope="module")
def python() -> Iterator[WarmPython]:
    with WarmPython() as process:
        yield process


@cache
def run_recipe(name: str, workspace: Path, python: WarmPython) -> dict[str, Any]:
    """Preprocess, train and generate; the output of each, everything in it."""
    if name in CHAINED:
        run_recipe("cnn_dm", workspace, python)
    short = ["--limit", "3", "--max-source-tokens", "401", "--max-target-tokens", "101", "--long-source", "truncate"]
    source = short if name in CARRIED else ["--partial", "--root", f"raw/{name}"]
    if name not in CARRIED:
        WRITERS[name](workspace / "raw" / name)
    bpe = ["--bpe-dir", "bpe"] if name in FROM_BART | CHAINED else ["--num-codes", "300"]
    train = TRAIN.split() + (POOLED if name in POOLED_ENCODERS else [])
    commands = {"preprocess": [*source, *bpe], "train": train, "generate": GENERATE.split()}
    outputs = {}
    for verb, flags in commands.items():
        command = recipes.build_commands(verb, name, flags)[0]
        outputs[verb] = python.run(command[3:], workspace, workspace / f"{name}.{verb}.log")
    return outputs


def json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.open(encoding="utf-8")]


@pytest.mark.parametrize("name", sorted(set(WRITERS) | CARRIED))
def test_from_the_raw_release_to_a_score(name: str, workspace: Path, python: WarmPython) -> None:
    outputs = run_recipe(name, workspace, python)
    assert re.search(r"num_updates[\"']?:? [\"']?2\b|done training", outputs["train"])
    documents = json_lines(workspace / f"data-bin/{name}/text/test.jsonl")
    texts = json_lines(workspace / f"results/{name}/test.jsonl")
    assert [row["id"] for row in texts] == [document["id"] for document in documents] and len(texts) >= 1
    assert any(row["text"] for row in texts)
    assert all(("segments" in row) == (name in parallel_containers.WRITERS) for row in texts)
    metric = files.load(files.find(name))["generate"]["score"].split()[0]
    assert f"hat score {metric}" in outputs["generate"]
    assert json.loads((workspace / f"results/{name}/test.score.json").read_text())


@pytest.mark.parametrize("name", sorted(FROM_BART | CHAINED))
def test_exactly_the_expected_tensors_are_new(name: str, workspace: Path, python: WarmPython) -> None:
    log = run_recipe(name, workspace, python)["train"]
    new = set(re.findall(r"^  ((?:encoder|decoder)\.\S+)$", log, re.MULTILINE))
    parts = {re.sub(r"^(encoder|decoder\.layers\.\d+)\.", "", tensor).partition(".")[0] for tensor in new}
    pooled = {"layers"} if name in POOLING else set()
    if name in CHAINED:
        assert new == {"encoder.embed_segments.weight"}
    elif name.startswith("poolingformer"):
        assert parts == pooled
    else:
        assert parts == {"hierarchical_encoder", "sentence_attn", "sentence_attn_layer_norm"} | pooled
    assert all(".self_attn.pooled." in tensor for tensor in new if tensor.startswith("encoder.layers."))
    long = name in {"pubmed", "arxiv", "ami", "icsi"}
    assert ("encoder.embed_positions.weight: extended from 1026 to 3074 rows (random)" in log) == long
    assert ("encoder.embed_positions.weight: extended from 1026 to 16386 rows (tile)" in log) == (name in POOLING)
