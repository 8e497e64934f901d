"""The head of a model card says what the languages of a model are, and what it does."""

from types import SimpleNamespace

import pytest

from hat_fairseq.data.kinds import KINDS
from hat_fairseq.data.options import Settings
from hat_fairseq.weights.card import front_matter


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
