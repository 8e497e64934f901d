"""Generation options: names and ranges. fairseq ignores unknown names and numbers that make no sense."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..data.dictionary import EOS, PAD, UNKNOWN
from ..data.files import at, parse_json
from .search import SearchOptions


class Option(NamedTuple):
    """A generation option of fairseq; `least`: the least number that makes sense."""

    name: str
    default: Any
    help: str
    least: int | None = None


SEARCHED = (  # those of our beam search
    Option("beam", 5, "number of hypotheses kept in each step", 1),
    Option("nbest", 1, "texts of a document", 1),
    Option("max_len_a", 0.0, "A in the greatest length, A times the length of the source plus B", 0),
    Option("max_len_b", 200, "B in the greatest length", 0),
    Option("min_len", 1, "least length, with </s>", 0),
    Option("unnormalized", False, "compare sums of log-probabilities, not their means"),
    Option("lenpen", 1.0, "length penalty: more than 1 favours longer texts"),
    Option("unkpen", 0.0, "penalty of <unk>"),
    Option("no_repeat_ngram_size", 0, "size of n-grams that may not repeat; 0 for none", 0),
    Option("temperature", 1.0, "divisor of the logits"),
)
NOT_SEARCHED = (  # those of fairseq's own loop
    Option("match_source_len", False, "make texts as long as their source"),
    Option("sampling", False, "draw words instead of searching"),
    Option("sampling_topk", -1, "with --sampling: draw from the K most probable words; -1 for all"),
    Option("sampling_topp", -1.0, "with --sampling: draw from the fewest words with this probability; -1 for all"),
    Option("diverse_beam_groups", -1, "number of groups of diverse beam search; -1 for none"),
    Option("diverse_beam_strength", 0.5, "penalty between groups of diverse beam search"),
    Option("diversity_rate", -1.0, "penalty between siblings in diverse sibling search; -1 for none"),
)
OPTIONS = SEARCHED + NOT_SEARCHED
DEFAULTS = {option.name: option.default for option in OPTIONS}
VALUES = {bool: ((bool,), "true or false"), int: ((int,), "a whole number"), float: ((int, float), "a number")}
MINIMUM = {option.name: option.least for option in OPTIONS if option.least is not None}


def check_ranges(options: Mapping[str, Any]) -> None:
    """Raises ValueError for a number below the least one that makes sense."""
    for name, least in MINIMUM.items():
        if (value := options.get(name)) is not None and value < least:
            raise ValueError(f"{name} must be at least {least}, not {value}")
    if options.get("no_repeat_ngram_size") == 1:
        raise ValueError("--no-repeat-ngram-size 1 would allow no word twice; use 2 or more, or 0 for no blocking")


def search_options(options: Mapping[str, Any], source_tokens: int, positions: int, words: int) -> SearchOptions:
    """Maps fairseq's options, or else its defaults, to those of our beam search.

    Args:
        source_tokens: of the longest source of the batch.
        positions: the decoder's.
        words: in its vocabulary.
    Raises:
        ValueError: min_len is more than the longest text allowed.
    """
    numbers = {**DEFAULTS, **options}
    longest = min(int(numbers["max_len_a"] * source_tokens + numbers["max_len_b"]), positions - 1)  # without </s>
    if numbers["min_len"] > longest:
        raise ValueError(f"--min-len {numbers['min_len']} is more than the longest text allowed, {longest} tokens")
    return SearchOptions(
        start=EOS,
        end=EOS,
        pad=PAD,
        unk=UNKNOWN,
        max_len=longest,
        min_len=numbers["min_len"],
        beam=min(numbers["beam"], words - 2),
        len_penalty=None if numbers["unnormalized"] else numbers["lenpen"],
        unk_penalty=numbers["unkpen"],
        temperature=numbers["temperature"],
        no_repeat_ngram_size=numbers["no_repeat_ngram_size"],
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
