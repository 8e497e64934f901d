"""Model cards: languages of a model and what it does; what a folder says of itself stays when it is written again."""

import re
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from commands import hat, refusal
from minilm import needs_minilm

from hat_fairseq.data.kinds import KINDS
from hat_fairseq.data.options import Settings
from hat_fairseq.weights.card import KEPT, front_matter
from hat_fairseq.weights.read_card import Card
from hat_fairseq.weights.trained import Trained

PACKAGE = Path(__file__).resolve().parents[2] / "hat_fairseq"


@pytest.mark.parametrize(
    ("source", "target", "says", "translates"),
    [
        ("en", "de", ["en", "de"], True),
        ("en", "en-GB", ["en", "en-GB"], False),
        ("de", "de", ["de"], False),
        ("en", "en", [], False),
    ],
)
def test_two_languages_are_a_translation(source: str, target: str, says: list[str], translates: bool) -> None:
    settings = Settings(source_language=source, target_language=target)
    head = front_matter(SimpleNamespace(settings=settings, kind=KINDS["text"]), [], {})
    assert ("pipeline_tag: translation\n" in head) == translates
    assert [line[2:] for line in head.splitlines() if line.startswith("- ")] == says


@pytest.mark.parametrize("name", ["demo", pytest.param("meeting", marks=[needs_minilm, pytest.mark.slow])])
def test_a_folder_that_is_written_again_keeps_its_card(name: str, tmp_path: Path) -> None:
    """Licence, training, scores and text stay; what is said of the weights is that of the new ones."""
    assert hat("export", name, "--out", tmp_path / "first", "--card", '{"datasets": ["ami"]}') == 0
    assert hat("export", tmp_path / "first", "--out", tmp_path / "new", "--half", "--card", '{"license": "mit"}') == 0
    text = (tmp_path / "new/README.md").read_text()
    before = Card.read(PACKAGE / f"{name}_model/README.md")
    after = Card.read(tmp_path / "new/README.md")
    assert after.fields == before.fields | {"datasets": ["ami"], "license": "mit"}
    assert after.text == before.text
    assert {each: after.facts[each] for each in KEPT}.items() <= before.facts.items()
    assert "in fp16 |" in text
    assert "# new\n" in text
    assert text.count("| trained with |") == 1
    assert len(re.findall("^---$", text, re.MULTILINE)) == 2


def test_a_card_whose_front_matter_is_none_is_refused(tmp_path: Path) -> None:
    card = tmp_path / "README.md"
    for front in ("a: [", "- a", "a"):
        card.write_text(f"---\n{front}\n---\n")
        with pytest.raises(ValueError, match=r"README.md: the front matter is not YAML with names and values"):
            Card.read(card)


@pytest.mark.parametrize(
    ("content", "fields", "text"),
    [
        ("", {}, ""),
        ("# Mine\n\nOf minutes.\n", {}, "# Mine\n\nOf minutes.\n"),
        ("---\nlicense: mit\n---\nOf minutes.\n\n---\n", {"license": "mit"}, "Of minutes.\n\n---\n"),
    ],
)
def test_cards_of_others(content: str, fields: dict[str, Any], text: str, tmp_path: Path) -> None:
    card = tmp_path / "README.md"
    card.write_text(content)
    assert Card.read(card) == Card(fields, {}, text)


def test_it_does_not_replace_its_input(tmp_path: Path) -> None:
    made = tmp_path / "demo"
    assert hat("export", "demo", "--out", made) == 0
    for words in ([made], ["demo", "--data", made / "bin"]):
        error = refusal("export", *words, "--out", made, "--overwrite", "--half")
        assert f"--out {made} is also an input of this command" in error
    assert f"is in {made}, which hat has written" in refusal("export", "demo", "--out", made / "copy")


def test_a_folder_has_no_settings_of_the_training_alone() -> None:
    """Such as the path of a file of vectors on this machine."""
    model = SimpleNamespace(config=SimpleNamespace(training_only=("vectors", "freeze_encoder")))
    settings = Namespace(vectors="mine/vectors.npz", freeze_encoder=True, encoder_layers=2, data="bin", log="/x/y")
    trained = Trained(model, {"task": Namespace(), "model": settings, "criterion": Namespace()}, None, 0, Path())
    assert trained.recorded()["cfg"]["model"] == {"encoder_layers": 2}
