"""Documents whose source and target segments should correspond one to one, and do not all."""

import random
from collections import Counter

import pytest

from hat_fairseq.data.kinds import Document, DocumentKind
from hat_fairseq.data.kinds.aligned import MisalignedError
from hat_fairseq.data.options import ON_MISALIGNED, Settings

LANGUAGES = ("en", "de")


def align(page: Document, policy: str, languages: tuple[str, str], counts: Counter[str]) -> Document:
    """The document as it is stored with `--aligned`."""
    settings = Settings(aligned=True, source_language=languages[0], target_language=languages[1])
    return DocumentKind().prepare(page, settings, counts, policy).record


def document(*pairs: tuple[str, str]) -> Document:
    sources, targets = zip(*pairs, strict=True)
    return Document("d1", sentences=sources, target=targets, origin="train.en:3-5, train.de:3-5")


def pairs_of(aligned: Document) -> list[tuple[str, str]]:
    return list(zip(aligned.elements or (), aligned.target or (), strict=True))


@pytest.mark.parametrize("policy", ON_MISALIGNED)
def test_pairs_empty_on_both_sides_are_dropped_and_counted(policy: str) -> None:
    counts: Counter[str] = Counter()
    aligned = align(document(("", " "), ("a", "b"), ("\x00", "\t"), ("c", "d")), policy, LANGUAGES, counts)
    assert pairs_of(aligned) == [("a", "b"), ("c", "d")]
    assert counts["segment_pairs_empty"] == 2


def test_an_empty_side_is_an_error_with_its_place() -> None:
    with pytest.raises(MisalignedError) as error:
        align(document(("a", "b"), ("c d", " "), ("e", "f")), "error", LANGUAGES, Counter())
    assert str(error.value) == (
        "document 'd1' (train.en:3-5, train.de:3-5): 3 source and 3 target segments, segment 2 has an empty target; "
        "correct it, or choose --on-misaligned drop or --on-misaligned merge"
    )
    with pytest.raises(MisalignedError, match="segment 1 has an empty source"):
        align(document(("", "b"), ("c d", "")), "error", LANGUAGES, Counter())


@pytest.mark.parametrize(
    ("pairs", "merged"),
    [
        ([("a", "b"), ("c", ""), ("d", "e")], [("a c", "b"), ("d", "e")]),
        ([("a", ""), ("c", "d"), ("e", "f")], [("a c", "d"), ("e", "f")]),
        ([("a", ""), ("", "d"), ("e", "f")], [("a", "d"), ("e", "f")]),
        ([("", "b"), ("", "d"), ("e", "f"), ("", "g")], [("e", "b d f g")]),
        ([("a", "b"), ("", ""), ("", "c"), ("d", "")], [("a d", "b c")]),
    ],
)
def test_text_without_other_side_joins_its_neighbour(
    pairs: list[tuple[str, str]], merged: list[tuple[str, str]]
) -> None:
    counts: Counter[str] = Counter()
    assert pairs_of(align(document(*pairs), "merge", LANGUAGES, counts)) == merged
    assert counts["segment_pairs_one_sided_merged"] == sum(bool(a) != bool(b) for a, b in pairs)


def test_merging_loses_nothing() -> None:
    generator = random.Random(6)
    for _ in range(2000):
        number = generator.randint(1, 7)
        pairs = [(generator.choice(["", f"s{i}"]), generator.choice(["", f"t{i}"])) for i in range(number)]
        if not any(a for a, _ in pairs) or not any(b for _, b in pairs):
            continue
        aligned = align(document(*pairs), "merge", LANGUAGES, Counter())
        assert all(all(pair) for pair in pairs_of(aligned))
        assert " ".join(aligned.elements or ()).split() == [a for a, _ in pairs if a]
        assert " ".join(aligned.target or ()).split() == [b for _, b in pairs if b]


def test_different_numbers_of_segments() -> None:
    page = Document("d1", sentences=("a", "b", "c"), target=("x", "y"), origin="one.jsonl:7")
    for policy in ("error", "drop"):  # it is the caller who drops it
        with pytest.raises(MisalignedError, match=r"^document 'd1' \(one\.jsonl:7\): 3 source and 2 target segments; "):
            align(page, policy, LANGUAGES, Counter())
    counts: Counter[str] = Counter()
    assert pairs_of(align(page, "merge", LANGUAGES, counts)) == [("a b c", "x y")]
    assert +counts == Counter(documents_misaligned_merged=1)


def test_merged_chinese_has_no_spaces() -> None:
    pages = document(("你好。", "Hello."), ("再见。", ""), ("ASCII.", ""), ("Only.", "Bye.")), Counter()
    assert pairs_of(align(pages[0], "merge", ("zh", "en"), pages[1])) == [
        ("你好。再见。ASCII.", "Hello."),
        ("Only.", "Bye."),
    ]
    page = Document("d", sentences=("One.", "Two."), target=("一。", "二。", "三。"))
    assert pairs_of(align(page, "merge", ("en", "ja"), Counter())) == [("One. Two.", "一。二。三。")]
