"""`hat import DIR`: states, ids, logits and gradients of transformers' encoders, with the options of published ones.

GTE, nomic-bert and Jina v3 are compared with transformers' own classes, which read the weights of the published code.
"""

import contextlib
import io
import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import encoders_of_today
import pytest
import torch
from building import PAD, build
from encoders_of_today import PUBLISHED, core_of, padded
from fairseq.data import Dictionary
from sentencepiece_model import tydi_lines
from tokenizers import Tokenizer
from torch import Tensor

from hat_fairseq import cli
from hat_fairseq.data.tokenizer_bpe import TokenizerBpe
from hat_fairseq.weights.families import RELEASES
from hat_fairseq.weights.hugging_face import read_config

OFF = " --dropout 0 --attention-dropout 0"
LENGTHS = [3, 8, 9, 10, 17, 18, 40, 100]  # a window of 8 on either side, and one of 6
LONG = [64, 65, 66, 130, 300]
LARGEST = 1e-5


class Task:
    """All that a model asks of a task."""

    def __init__(self, path: Path) -> None:
        self.source_dictionary = self.target_dictionary = Dictionary.load(str(path))
        self.source_dictionary.add_symbol("<mask>")
        self.role_dictionary = None


@dataclass
class Case:
    """A model of transformers, its folder, and what `hat import` has made of it."""

    name: str
    peer: Any
    tokenizer: Tokenizer
    folder: Path
    out: Path
    printed: str

    @property
    def family(self) -> str:
        return PUBLISHED[self.name].family

    @cached_property
    def starts(self) -> list[list[str]]:
        lines = [shlex.split(line) for line in self.printed.splitlines() if line.startswith("  --arch")]
        return [words[:-2] for words in lines]

    @cached_property
    def state(self) -> dict[str, Tensor]:
        return dict(torch.load(self.out, weights_only=True)["model"])

    def model(self, start: int = 0, more: str = " --no-hierarchy") -> Any:
        """A model of printed flags, loaded from the checkpoint."""
        words = self.starts[start]
        flags = " ".join(words[2:]) + OFF + more
        model = build(words[1], flags, Task(self.out.with_name("dict.txt")), seed=5).eval()
        model.load_state_dict(dict(self.state))
        return model

    @cached_property
    def rows(self) -> list[list[int]]:
        """Ids of transformers, of texts in eleven languages, cut to lengths around the window and beyond."""
        text = " ".join(line[:200] for line in tydi_lines()[:12])
        ids = self.tokenizer.encode(text).ids
        lengths = LONG if "128" in self.name else LENGTHS
        return [ids[: length - 1] + ids[-1:] for length in lengths]

    def ours(self, rows: list[list[int]]) -> list[list[int]]:
        """The ids of our dictionary for ids of transformers."""
        bpe = TokenizerBpe.load(self.out.with_name("tokenizer.json"))
        number = {row: ours for ours, row in reversed([*enumerate(bpe.rows)]) if row is not None}
        return [[number[row] for row in ids] for ids in rows]

    @property
    def peer_pad(self) -> int:
        return int(self.peer.config.pad_token_id or 0)

    def peer_batch(self, rows: list[list[int]]) -> dict[str, Tensor]:
        tokens = padded(rows, self.peer_pad)
        lengths = torch.tensor([len(row) for row in rows])
        return {"input_ids": tokens, "attention_mask": (torch.arange(tokens.size(1)) < lengths[:, None]).long()}


CASES: dict[str, Case] = {}


def imported(folder: Path, out: Path, *flags: str) -> tuple[int, str]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        status = cli.main(["import", str(folder), "--out", str(out), *flags])
    return status, printed.getvalue()


@pytest.fixture(scope="module")
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    name = request.param
    if name not in CASES:
        path = tmp_path_factory.mktemp("encoder")
        peer, tokenizer = encoders_of_today.write(name, path / "folder")
        status, printed = imported(path / "folder", path / "own/model.pt")
        assert status == 0 and f"folder: {PUBLISHED[name].family}\n" in printed
        CASES[name] = Case(name, peer, tokenizer, path / "folder", path / "own/model.pt", printed)
    return CASES[name]


SAME_AGAIN = ("ModernBERT-large", "gte-modernbert-base", "BioClinical-ModernBERT", "Ettin-17m", "EuroBERT-2.1B, tied")
SAME_AGAIN += ("multilingual-e5-small", "electra-base-generator", "arctic-embed-m")
EACH = pytest.mark.parametrize(
    "case",
    [pytest.param(name, marks=pytest.mark.slow) if name in SAME_AGAIN else name for name in PUBLISHED],
    indirect=True,
)
ONE_EACH = [
    next(name for name, each in PUBLISHED.items() if each.family == family)
    for family in dict.fromkeys(each.family for each in PUBLISHED.values())
]
OF_FAMILIES = pytest.mark.parametrize("case", ONE_EACH, indirect=True)


def largest(actual: Tensor, expected: Tensor) -> float:
    return float((actual - expected).abs().max()) / max(1.0, float(expected.abs().max()))


@EACH
@torch.no_grad()
def test_states_padded_and_alone(case: Case) -> None:
    model, batch = case.model(), case.peer_batch(case.rows)
    expected = core_of(case.peer)(**batch).last_hidden_state
    tokens = padded(case.ours(case.rows), PAD)
    states = model(tokens, features_only=True)[0]
    real = batch["attention_mask"].bool()
    differences = [largest(states[real], expected[real])]
    for row, whole in zip(tokens, expected, strict=True):
        alone = model(row[row != PAD][None], features_only=True)[0][0]
        differences.append(largest(alone, whole[: len(alone)]))
    left = torch.stack([torch.cat([row[row == PAD], row[row != PAD]]) for row in tokens])
    differences.append(largest(model(left, features_only=True)[0][left != PAD], expected[real]))
    print(f"PARITY {case.name} | states {max(differences):.1e}")
    assert max(differences) < LARGEST


@EACH
def test_ids_of_texts_in_eleven_languages(case: Case) -> None:
    """Those of the folder's own tokenizer.json, by the tokenizer that a training and a prediction use."""
    bpe = TokenizerBpe.load(case.out.with_name("tokenizer.json"))
    number = dict(zip(["<s>", "<pad>", "</s>", "<unk>", *bpe.symbols], bpe.rows, strict=False))
    for text in [*tydi_lines()[:60:2], "12 + 7 = 19", "naïve café", "x <table> y"]:
        ids = case.tokenizer.encode(text).ids
        assert [
            number["<s>"],
            *(number.get(token, number["<unk>"]) for token in bpe.encode(text)),
            number["</s>"],
        ] == ids, text


def has_head(case: Case) -> bool:
    return "encoder.lm_head.weight" in case.state


@EACH
@torch.no_grad()
def test_logits_of_masked_words(case: Case) -> None:
    if not has_head(case):
        assert case.family == "ultrabert" or "discriminator" in case.name
        assert "lm_head in the folder: a masked-LM" in case.printed or "no masked-LM head" in case.printed
        return
    model, batch = case.model(), case.peer_batch(case.rows[:4])
    bpe = TokenizerBpe.load(case.out.with_name("tokenizer.json"))
    known = [ours for ours, row in enumerate(bpe.rows) if row is not None]
    rows = [bpe.rows[ours] for ours in known]
    expected = case.peer(**batch).logits[..., rows]
    logits = model(padded(case.ours(case.rows[:4]), PAD))[0][..., known]
    real = batch["attention_mask"].bool()
    difference = largest(logits[real], expected[real])
    print(f"PARITY {case.name} | logits {difference:.1e}")
    assert difference < LARGEST


TABLES = ("embed_positions", "embed_tokens")  # of which BERT's importer makes sums


@EACH
def test_gradients(case: Case) -> None:
    """The gradients of transformers' parameters, converted as weights are, are those of ours."""
    model, rows = case.model().train(), case.rows[2:6]
    batch, tokens = case.peer_batch(rows), padded(case.ours(rows), PAD)
    real = batch["attention_mask"].bool()
    case.peer.zero_grad()
    # on a CPU dropout is off; the mode decides how our feed-forward networks keep their input
    states, expected = model(tokens, features_only=True)[0], core_of(case.peer)(**batch).last_hidden_state
    weight = torch.randn(expected.shape, generator=torch.Generator().manual_seed(7))
    (states * weight)[real].sum().backward()
    (expected * weight)[real].sum().backward()
    parameters = dict(case.peer.named_parameters(remove_duplicate=False))
    named = {name: torch.zeros_like(p) if p.grad is None else p.grad for name, p in parameters.items()}
    release = RELEASES[case.family]
    config = read_config(
        case.folder / "config.json", release.fixed, release.sizes, release.target, release.defaults, release.rename
    )
    convert, tokenizer = release.convert, TokenizerBpe.load(case.folder / "tokenizer.json")
    if release.tokenizer is None:
        from hat_fairseq.weights import like_bert

        convert = like_bert.with_tokenizer
    wanted = convert(named, config, tokenizer).model
    compared = 0
    for name, parameter in model.named_parameters():
        skipped = TABLES if "embed_token_type" not in "".join(case.state) else ()
        if "classification_heads" in name or "lm_head" in name or any(table in name for table in skipped):
            continue
        gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        scale = max(float(each.abs().max()) for each in (gradient, wanted[name]))
        if "k_proj.bias" in name or not scale:  # which never changes a softmax
            continue
        if "embed_tokens" in name:
            gradient, wanted[name] = gradient[4:], wanted[name][4:]  # fairseq's padding has none
        if name.endswith((".fc1.bias", "embed_token_type.weight")) and not wanted[name].any():
            continue  # zeros that the release does not have
        assert float((gradient - wanted[name]).abs().max()) < 1e-4 * scale, name
        compared += 1
    assert compared > 20


@OF_FAMILIES
@torch.no_grad()
def test_segments_are_the_encoder_on_each_alone(case: Case) -> None:
    """Also segments that are longer than a window of local layers."""
    start = next(n for n, words in enumerate(case.starts) if words[1].startswith("hierarchical_transformer"))
    layers = case.starts[0][case.starts[0].index("--encoder-layers") + 1]
    layout = f" --layout {'|'.join('S' * int(layers))} --segment-length 60 --max-segments 20 --segment-by marker"
    model = case.model(start, layout)
    bos = case.tokenizer.encode("").ids[0]
    rows = [
        [bos, *case.rows[-1][1 + first : 1 + first + length]] for first, length in ((0, 5), (5, 59), (9, 1), (30, 30))
    ]
    states = model(torch.tensor([sum(case.ours(rows), [])]), features_only=True)[0][0]
    expected = [core_of(case.peer)(**case.peer_batch([row])).last_hidden_state[0] for row in rows]
    difference = largest(states, torch.cat(expected))
    print(f"PARITY {case.name} | segments {difference:.1e}")
    assert difference < LARGEST


@OF_FAMILIES
@torch.no_grad()
def test_bf16_is_as_near_as_that_of_transformers(case: Case) -> None:
    batch, tokens = case.peer_batch(case.rows), padded(case.ours(case.rows), PAD)
    real, core = batch["attention_mask"].bool(), core_of(case.peer)
    expected = core(**batch).last_hidden_state[real]
    states = case.model().to(torch.bfloat16)(tokens, features_only=True)[0][real].float()
    core.to(torch.bfloat16)
    theirs = core(**batch).last_hidden_state[real].float()
    core.to(torch.float32).load_state_dict(
        core_of(encoders_of_today.random_model(type(case.peer), case.peer.config)).state_dict()
    )
    ours, of_theirs = (float((x - expected).norm() / expected.norm()) for x in (states, theirs))
    print(f"PARITY {case.name} | bf16 {ours:.1e} of {of_theirs:.1e}")
    assert ours < 1.25 * of_theirs
