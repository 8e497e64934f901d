"""Generation options: names and ranges. fairseq ignores unknown names and numbers that make no sense."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..data.dictionary import EOS, PAD, UNKNOWN
from ..data.files import at, parse_json
from ..data.options import OptionError
from .search import SearchOptions


class Option(NamedTuple):
    """A generation option of fairseq; `least`: the least number that makes sense, beside the default."""

    name: str
    default: Any
    help: str
    least: int | None = None


SEARCHED = (  # of our beam search, and of fairseq
    Option("beam", 5, "keep this many hypotheses in each step", 1),
    Option("nbest", 1, "return this many texts for each document", 1),
    Option("max_len_a", 0.0, "write at most this many times the tokens of the source, plus --max-len-b", 0),
    Option("max_len_b", 200, "write at most this many tokens beyond --max-len-a times those of the source", 0),
    Option("min_len", 1, "write at least this many tokens, without </s>", 0),
    Option("unnormalized", False, "compare the sums of the log-probabilities of hypotheses, not their means"),
    Option("lenpen", 1.0, "the exponent of the length penalty; more than 1 favours longer texts"),
    Option("unkpen", 0.0, "subtract this from the log-probability of <unk>"),
    Option("no_repeat_ngram_size", 0, "repeat no n-gram of this many tokens within a text; 0 allows all", 0),
    Option("temperature", 1.0, "divide logits by this number; above 1, probabilities become more equal"),
)
NOT_SEARCHED = (  # of fairseq's generator alone
    Option("match_source_len", False, "make texts as long as their source"),
    Option("sampling", False, "draw words instead of searching"),
    Option("sampling_topk", -1, "with --sampling: draw from this many most probable words; -1 for all", 1),
    Option("sampling_topp", -1.0, "with --sampling: draw from the fewest words with this probability; -1 for all"),
    Option(
        "diverse_beam_groups",
        -1,
        "the groups of diverse beam search, of which a single text mostly comes from the first; -1 for none",
        1,
    ),
    Option("diverse_beam_strength", 0.5, "the penalty between groups of diverse beam search"),
    Option("diversity_rate", -1.0, "the penalty between siblings in diverse sibling search; -1 for none", 0),
)
OPTIONS = SEARCHED + NOT_SEARCHED
DEFAULTS = {option.name: option.default for option in OPTIONS}
VALUES = {bool: ((bool,), "true or false"), int: ((int,), "a whole number"), float: ((int, float), "a number")}
MINIMUM = {option.name: option.least for option in OPTIONS if option.least is not None}
EXCLUSIVE = ("sampling", "diverse_beam_groups", "diversity_rate", "match_source_len")  # kinds of search


def check_ranges(options: Mapping[str, Any]) -> None:
    """Raises ValueError for a number below the least one that makes sense, and for what is no finite number."""
    for name, value in options.items():
        if isinstance(value, float) and not math.isfinite(value) and (name, value) != ("unkpen", math.inf):
            raise ValueError(f"{name} must be a finite number, not {value}")
    for name, least in MINIMUM.items():
        if (value := options.get(name)) is not None and value < least and value != DEFAULTS[name]:
            raise ValueError(f"{name} must be at least {least}, not {value}")
    if (share := options.get("sampling_topp")) is not None and not (0 < share <= 1 or share == -1):
        raise ValueError(f"sampling_topp must be more than 0 and at most 1, or -1 for all words, not {share}")
    if (temperature := options.get("temperature")) is not None and temperature <= 0:
        raise ValueError(f"temperature must be more than 0, not {temperature}")
    if options.get("no_repeat_ngram_size") == 1:
        text = "{no_repeat_ngram_size} would allow no word twice; use 2 or more, or 0 for no blocking"
        raise OptionError(text, no_repeat_ngram_size=1)


def is_set(options: Mapping[str, Any], name: str) -> bool:
    """Returns whether an option has another value than fairseq's default."""
    return options.get(name) not in (None, DEFAULTS[name])


def longest_text(max_len_a: float, max_len_b: int, min_len: int, source_tokens: int, positions: int) -> int:
    """Returns the tokens of the longest text allowed, without `</s>`; ValueError if `min_len` is more."""
    longest = min(int(max_len_a * source_tokens + max_len_b), positions - 1)
    if min_len > longest:
        source = f" for a source of {source_tokens}" if max_len_a else ""
        text = (
            "{min_len} is more than the longest text allowed, {} tokens{}; if it is not yours, it is a setting of the "
        )
        raise OptionError(f"{text}model", longest, source, min_len=min_len)
    return longest


def search_options(
    options: Mapping[str, Any], source_tokens: Sequence[int], positions: int, vocabulary: int
) -> SearchOptions:
    """Maps fairseq's options, or else its defaults, to those of our beam search.

    Args:
        source_tokens: of the source of each document, so that no text depends on the others of its batch.
        positions: the decoder's.
        vocabulary: its size.
    Raises:
        ValueError: min_len is more than the longest text allowed for a document.
    """
    settings = {**DEFAULTS, **options}
    a, b, least = (settings[name] for name in ("max_len_a", "max_len_b", "min_len"))
    return SearchOptions(
        start=EOS,
        end=EOS,
        pad=PAD,
        unk=UNKNOWN,
        max_len=tuple(longest_text(a, b, least, tokens, positions) for tokens in source_tokens),
        min_len=least,
        beam=min(settings["beam"], vocabulary - 2),
        len_penalty=None if settings["unnormalized"] else settings["lenpen"],
        unk_penalty=settings["unkpen"],
        temperature=settings["temperature"],
        no_repeat_ngram_size=settings["no_repeat_ngram_size"],
    )


def check_options(options: Mapping[str, Any], source: str) -> None:
    """Raises ValueError for an unknown option, or a value of another type or out of range; `source`: who gives it."""
    for name, value in options.items():
        if name not in DEFAULTS:
            raise ValueError(f"{source}: unknown generation option {name!r}; known are {', '.join(sorted(DEFAULTS))}")
        types, expected = VALUES[type(DEFAULTS[name])]
        if type(value) not in types:
            raise ValueError(f"{source}: {name} must be {expected}, not {value!r:.60}")
    with at(source):
        check_ranges(options)


def parse_generation_options(text: str, flag: str) -> dict[str, Any]:
    """Parses options such as beam or lenpen from the value of `flag`; ValueError if it is no JSON object of them."""
    try:
        options = parse_json(text)
    except ValueError as error:
        raise ValueError(f"{flag} {text}: not JSON ({error})") from None
    if not isinstance(options, dict):
        raise ValueError(f'{flag} {text}: expected a JSON object such as {{"beam": 4}}')
    check_options(options, flag)
    return options
