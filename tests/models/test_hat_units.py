"""`hat_units` with heads of labels: vectors of units, kept vectors, a training, and what it refuses."""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from building import TINY_ENCODER, Vocabulary, build
from commands import REPOSITORY, USER_DIR, hat, write_lines
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.tasks import TASK_REGISTRY
from helpers import assert_close
from unit_tokens import contexts, drawn, keeping, padded, vector

from hat_fairseq import hf
from hat_fairseq.analysis.recording import Recorder
from hat_fairseq.criterions.labels import DocumentLabels
from hat_fairseq.units.fit_words import fit_words
from hat_fairseq.units.network import LITTLE_PADDING, MOST_PADDING, TOKENS_OF_BATCH, batches_of
from hat_fairseq.weights.trained import Trained

BOS, PAD, EOS = 0, 1, 2
FLAGS = f"{TINY_ENCODER} --max-positions 20 --segment-length 9 --unit-dropout 0"
HEAD = "sentence_classification_head"


def model_of(flags: str = "", level: str = "document", classes: int = 2) -> Any:
    model = build("hat_units_tiny", FLAGS + flags, Vocabulary(mask=True))
    model.register_classification_head(HEAD, num_classes=classes, level=level)
    return model.eval()


def row(units: list[list[int]]) -> list[int]:
    return [*(token for unit in units for token in (BOS, *unit)), EOS]


FIRST, SECOND = drawn(2, 7, 8, 20, 1, seed=1), drawn(6, 3, seed=3)
ROWS = padded(row(FIRST), row(SECOND))


@pytest.mark.parametrize("which", ["alone", "context", "both"])
def test_each_unit_has_its_vector(which: str) -> None:
    model = model_of(f" --unit-vectors {which}")
    encoded = model.encode(ROWS)
    assert encoded.spans_padding.tolist() == [[False] * 5, [False, False, True, True, True]]
    for found, units in zip(encoded.spans, (FIRST, SECOND), strict=True):
        alone = torch.stack([vector(model, unit) for unit in units])
        inside = torch.nn.functional.normalize(torch.stack(contexts(model, units)), dim=1)
        parts = {"alone": [alone], "context": [inside], "both": [alone, inside]}[which]
        assert_close(found[: len(units)], torch.cat(parts, dim=1))


def test_rows_are_divided_at_their_markers() -> None:
    encoder = model_of().core
    assert encoder.parts([0, 5, 6, 0, 7, 2, 2, 0, 0, 8, 2, 1, 1]) == ([(5, 6), (7,)], [(), (8,)])
    assert encoder.parts([2, 1]) == ([], [])


@pytest.mark.parametrize("flags", ["", " --unit-layout N|D", " --unit-vectors both"])
@pytest.mark.parametrize("level", ["document", "segment"])
def test_padding_changes_no_logits(flags: str, level: str) -> None:
    model = model_of(flags, level)
    both = model(ROWS, classification_head_name=HEAD)[0]
    for found, units in zip(both, (FIRST, SECOND), strict=True):
        alone = model(padded(row(units)), classification_head_name=HEAD)[0][0]
        assert_close(found[: len(units)] if level == "segment" else found, alone)


@pytest.mark.parametrize("which", ["alone", "context", "both"])
def test_kept_vectors_give_the_same_logits(which: str, tmp_path: Path) -> None:
    flags, path = f" --unit-vectors {which} --freeze-encoder", tmp_path / "vectors.npz"
    expected = model_of(flags)(ROWS, classification_head_name=HEAD)[0]
    for _ in range(2):  # computed, and read from the file
        model = keeping(model_of(flags), path).train()
        kept = model(ROWS, classification_head_name=HEAD)[0]
        model.core.cache.save()
        torch.testing.assert_close(kept, expected, atol=2e-2, rtol=2e-2)
    assert path.is_file()


@pytest.mark.parametrize("level", ["pair", "token", "paragraphs"])
def test_heads_about_something_else_are_refused(level: str) -> None:
    with pytest.raises(ValueError, match="hat_units is for labels of documents or segments and for evidence"):
        model_of(level=level)


@pytest.mark.parametrize(("level", "tensors"), [("document", 5), ("segment", 10)])
def test_words_can_be_left_out(level: str, tensors: int) -> None:
    for flags, number in (("", tensors), (" --no-words", 0)):
        assert sum(".words." in name for name in model_of(flags, level).state_dict()) == number


STEPS = (0, 1, 5, 20, 39)
TARGETS = {"document": torch.tensor([1, 0]), "segment": torch.tensor([[1, 0, 1, 1, 0], [0, 1, -100, -100, -100]])}


@pytest.mark.parametrize("level", TARGETS)
def test_golden_training_and_scores(level: str) -> None:
    """A few updates on two documents: the losses, and then the logits, of documents with words beside them."""
    golden = REPOSITORY / f"tests/golden/hat_units_{level}.json"
    torch.manual_seed(1)
    model = model_of(level=level).train()
    optimizer, target = torch.optim.AdamW(model.parameters(), lr=5e-3), TARGETS[level]
    task = SimpleNamespace(default_criterion="document_labels", labels=["a", "b"])
    criterion, losses = DocumentLabels(task), []
    if level == "document":
        fit_words(model.classification_head(HEAD).words, [*ROWS, *ROWS], [1, 0, 1, 0])
    for _ in range(max(STEPS) + 1):
        loss, size, _ = criterion.compute(model(ROWS, classification_head_name=HEAD)[0], target)
        optimizer.zero_grad()
        (loss / size).backward()
        optimizer.step()
        losses.append(float(loss.detach() / size))
    scores = model.eval()(ROWS, classification_head_name=HEAD)[0].detach()[target >= 0].flatten().tolist()
    chosen = [*(losses[step] for step in STEPS), *scores]
    if os.environ.get("HAT_GOLDEN"):
        golden.write_text(json.dumps([round(value, 4) for value in chosen]) + "\n", encoding="utf-8")
    assert losses[-1] < 0.3 * losses[0]
    assert chosen == pytest.approx(json.loads(golden.read_text(encoding="utf-8")), abs=2e-2)


def test_the_weights_that_are_shown_are_those_of_the_gate() -> None:
    model, tokens = model_of(), torch.tensor([row(FIRST)])
    with Recorder(model.core, tokens, heads=model.classification_heads.values()) as recorder:
        model(tokens, classification_head_name=HEAD)
    (shown,) = recorder.maps()
    assert (shown.name, shown.queries, shown.weights.shape) == ("gated attention", "document", (1, 1, 1, len(FIRST)))
    encoded = model.encode(tokens)
    assert_close(
        shown.weights[0, 0], model.classification_head(HEAD).unit_weights(encoded.spans, encoded.spans_padding)
    )
    assert_close(shown.weights.sum(), torch.tensor(1.0))


def test_choices_are_refused_with_the_networks_that_read_both_together(tmp_path: Path) -> None:
    """In a training and in transformers; a row would have the text and the choice as sentences of one document."""
    rows = [{"id": f"{n}", "text": "a b", "choices": ["c d", "e f"], "label": n % 2} for n in range(2)]
    write_lines(tmp_path / "raw/train.jsonl", rows)
    words = ["--kind", "choice", "--num-codes", 5, "--splitter", "punctuation", "--out", tmp_path / "data"]
    assert hat("preprocess", tmp_path / "raw", *words) == 0
    kind, flags = TASK_REGISTRY["multiple_choice"], f"--arch hat_units_tiny {FLAGS}"
    parser = options.get_training_parser()
    words = f"{tmp_path}/data/bin --user-dir {USER_DIR} --task multiple_choice --criterion document_labels {flags}"
    cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, words.split()))
    with pytest.raises(ValueError, match="--kind choice: hat_units has no head for choices.*--arch hat_roberta_"):
        kind.setup_task(cfg.task).build_model(cfg.model)
    config = hf.HatConfig("hat_units", {"encoder_embed_dim": 24, "encoder_layers": 1}, vocab_size=9)
    with pytest.raises(ValueError, match="hat_units has no head for choices.*hierarchical_transformer_"):
        hf.HatForMultipleChoice(config)


@pytest.mark.parametrize("lengths", [[5] * 900, [*range(3, 90)], [1000, 3, 3, 3000, 5000], [7], []])
def test_batches_have_each_text_and_little_padding(lengths: list[int]) -> None:
    parts = [*batches_of(lengths)]
    assert sorted(index for part in parts for index in part) == [*range(len(lengths))]
    for part in parts:
        own = sorted(lengths[index] for index in part)
        size = len(own) * own[-1]
        assert len(own) == 1 or size <= TOKENS_OF_BATCH
        assert size - sum(own) <= max(MOST_PADDING * size, LITTLE_PADDING)


@pytest.mark.parametrize("flags", [" --unit-layout none", " --unit-layout N|D"])
def test_an_export_describes_heads_of_units(flags: str) -> None:
    model = model_of(flags, "segment")
    task = SimpleNamespace(heads=lambda: {HEAD: ("segment", 2)}, labels=["a", "b"])
    trained = Trained(model, None, task, 1, Path("bin"))
    assert trained.heads[HEAD]["classes"] == 2


def test_settings_of_other_heads_are_named(caplog: pytest.LogCaptureFixture) -> None:
    model_of()
    assert caplog.messages == []
    model_of(" --pooler-dropout 0.2 --pooler-inner-dim 7")
    lines = [f"--pooler-{what} has no effect in a network over units" for what in ("dropout 0.2", "inner-dim 7")]
    assert [line for line in caplog.messages if "no effect" in line] == lines
