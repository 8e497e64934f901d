import random
import time
from collections import Counter
from pathlib import Path

import pytest
from fairseq.data import Dictionary

from hat_fairseq.data.dictionary import Dictionary as Symbols
from hat_fairseq.data.dictionary import label_of, label_token, read_labels
from hat_fairseq.data.kinds import Document
from hat_fairseq.data.record import Record
from hat_fairseq.data.text import (
    CONTROL_TOKENS,
    ON_MISALIGNED,
    SPLITTERS,
    MisalignedError,
    align,
    normalise,
    split_segments,
    split_sentences,
)


def test_every_kind_of_replacement_is_counted() -> None:
    for text, clean, counted in [
        ("a\r\nb\nc", "a b c", {"line_breaks_to_space": 2}),
        ("a\rb", "a b", {"carriage_returns_to_space": 1}),
        ("a\tb", "a b", {"tabs_to_space": 1}),
        ("a\x0bb\x0cc\x85d\u2028e\u3000f\x1cg", "a b c d e f g", {"other_whitespace_to_space": 6}),
        ("a\x00b\x07c\x9fd", "abcd", {"control_characters_removed": 3}),
        ("a\ud800b", "a\ufffdb", {"lone_surrogates_replaced": 1}),
        (" a   b    c ", "a b c", {"runs_of_spaces_shortened": 2}),
        ("naïve e\u0301 日本 🙂", "naïve e\u0301 日本 🙂", {}),
        ("\r\n\x00 ", "", {"line_breaks_to_space": 1, "control_characters_removed": 1, "runs_of_spaces_shortened": 1}),
    ]:
        counts: Counter[str] = Counter()
        assert normalise(text, counts) == clean
        assert counts == counted


def test_any_text_ends_on_one_line_that_python_and_fairseq_split_alike() -> None:
    counts: Counter[str] = Counter()
    everything = "".join(f"x{chr(code)}" for code in range(0x11000))
    clean = normalise(everything, counts)
    assert clean.splitlines() == [clean]
    assert clean.split() == clean.split(" ")
    assert clean.encode()
    again: Counter[str] = Counter()
    assert normalise(clean, again) == clean and not again


def test_segments_are_split_at_tabs() -> None:
    assert split_segments("One.\tTwo. \t\tFour.") == ["One.", "Two.", "", "Four."]
    assert split_segments("") == [""]


LABELS = [
    "true",
    "not hyper%partisan",
    "a%20b",
    "<pad>",
    "%3Cpad>",
    "x\u3000y\u00a0",
    "\n",
    "\ud800",
    "中 文",
    "#",
    "0",
]


def test_every_label_is_one_token_and_back(tmp_path: Path) -> None:
    tokens = list(map(label_token, LABELS))
    assert list(map(label_of, tokens)) == LABELS
    assert all([token] == token.split() for token in tokens)
    assert len({*tokens, *CONTROL_TOKENS}) == len(LABELS) + len(CONTROL_TOKENS)
    assert tokens[0] == "true" and tokens[8] == "中%20文"  # readable where it can be
    Symbols.of(tokens).save(tmp_path / "dict.txt")
    dictionary = Dictionary.load(str(tmp_path / "dict.txt"))
    assert [dictionary.index(token) - dictionary.nspecial for token in tokens] == list(range(len(LABELS)))
    assert read_labels(tmp_path / "dict.txt") == LABELS


SPLITTING = SPLITTERS[1:]
PARAGRAPH = 'Mr. Smith paid $3.50. "Why?" asked Ann... Nobody knew! It cost e.g. more'


def test_punctuation_is_simple() -> None:
    assert split_sentences(PARAGRAPH, "punctuation") == [
        "Mr.",
        "Smith paid $3.50.",
        '"Why?"',
        "asked Ann...",
        "Nobody knew!",
        "It cost e.g.",
        "more",
    ]


def test_library_knows_abbreviations() -> None:
    assert split_sentences(PARAGRAPH, "library") == [
        "Mr. Smith paid $3.50.",
        '"Why?" asked Ann...',
        "Nobody knew!",
        "It cost e.g. more",
    ]


def test_long_words_do_not_move_the_ends_of_sentences() -> None:
    """The library sees both ends of a word only."""
    word = "x" * 200
    assert split_sentences(f"One {word} two. Three {word}. Four", "library") == [
        f"One {word} two.",
        f"Three {word}.",
        "Four",
    ]


def test_nothing_is_lost(meetings: list[Record]) -> None:
    for method in SPLITTING:
        texts = [" ".join(meeting.sentences or ()) for meeting in meetings[:3]]
        generator = random.Random(2)
        texts += ["".join(generator.choices("aB .!?…。”'\")(1é日 \u2028", k=80)) for _ in range(300)]
        for text in texts:
            sentences = split_sentences(text, method)
            assert "".join("".join(sentences).split()) == "".join(text.split())
            assert all(sentence == sentence.strip() and sentence for sentence in sentences)


def test_hostile_text_takes_no_longer_than_its_length_deserves() -> None:
    for method in SPLITTING:
        for text in [
            "w " * 50_000,
            "." * 50_000 + " A",
            "." * 200_000 + "A",
            '."' * 25_000 + " A",
            "x" * 50_000,
            ". " * 25_000,
        ]:
            begin = time.process_time()
            assert len("".join(split_sentences(text, method)).replace(" ", "")) == len(text.replace(" ", ""))
            assert time.process_time() - begin < 5  # about 0.2 on an idle machine; quadratic ones take minutes


def test_mistakes_are_refused() -> None:
    with pytest.raises(ValueError, match="has no given sentences; give sentences or turns, or --splitter"):
        split_sentences("a b", "given")
    with pytest.raises(ValueError, match="does not know the language 'xx'"):
        split_sentences("a b", "library", language="xx")


LANGUAGES = ("en", "de")


def document(*pairs: tuple[str, str]) -> Record:
    sources, targets = zip(*pairs, strict=True)
    return Document("d1", sentences=sources, target=targets, origin="train.en:3-5, train.de:3-5")


def pairs_of(aligned: Record) -> list[tuple[str, str]]:
    return list(zip(aligned.sentences or (), aligned.target or (), strict=True))


def test_pairs_empty_on_both_sides_are_dropped_and_counted() -> None:
    for policy in ON_MISALIGNED:
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


def test_text_without_other_side_joins_its_neighbour() -> None:
    for pairs, merged in [
        ([("a", "b"), ("c", ""), ("d", "e")], [("a c", "b"), ("d", "e")]),
        ([("a", ""), ("c", "d"), ("e", "f")], [("a c", "d"), ("e", "f")]),
        ([("a", ""), ("", "d"), ("e", "f")], [("a", "d"), ("e", "f")]),
        ([("", "b"), ("", "d"), ("e", "f"), ("", "g")], [("e", "b d f g")]),
        ([("a", "b"), ("", ""), ("", "c"), ("d", "")], [("a d", "b c")]),
    ]:
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
        assert " ".join(aligned.sentences or ()).split() == [a for a, _ in pairs if a]
        assert " ".join(aligned.target or ()).split() == [b for _, b in pairs if b]


def test_different_numbers_of_segments() -> None:
    page = Document("d1", sentences=("a", "b", "c"), target=("x", "y"), origin="one.jsonl:7")
    for policy in ("error", "drop"):  # it is the caller who drops it
        with pytest.raises(MisalignedError, match=r"^document 'd1' \(one\.jsonl:7\): 3 source and 2 target segments; "):
            align(page, policy, LANGUAGES, Counter())
    counts: Counter[str] = Counter()
    assert pairs_of(align(page, "merge", LANGUAGES, counts)) == [("a b c", "x y")]
    assert counts == Counter(documents_misaligned_merged=1)


def test_merged_chinese_has_no_spaces() -> None:
    pages = document(("你好。", "Hello."), ("再见。", ""), ("ASCII.", ""), ("Only.", "Bye.")), Counter()
    assert pairs_of(align(pages[0], "merge", ("zh", "en"), pages[1])) == [
        ("你好。再见。ASCII.", "Hello."),
        ("Only.", "Bye."),
    ]
    page = Document("d", sentences=("One.", "Two."), target=("一。", "二。", "三。"))
    assert pairs_of(align(page, "merge", ("en", "ja"), Counter())) == [("One. Two.", "一。二。三。")]
