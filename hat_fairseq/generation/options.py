"""Generation options of fairseq, which ignores unknown names and numbers that make no sense."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..data.dictionary import EOS, PAD, UNKNOWN
from ..data.files import at, parse_json
from ..options import OptionError, as_in_python, option, options_of
from .search import SearchOptions


@dataclass(frozen=True)
class Searched:
    """Options of our beam search, and of fairseq."""

    beam: int = option(5, "keep this many hypotheses in each step", least=1)
    nbest: int = option(1, "return this many texts for each document", least=1)
    max_len_a: float = option(
        0.0,
        "write at most this many times the tokens of the source, plus --max-len-b",
        least=0,
        excludes="match_source_len",
    )
    max_len_b: int = option(
        200,
        "write at most this many tokens beyond --max-len-a times those of the source",
        least=0,
        excludes="match_source_len",
    )
    min_len: int = option(1, "write at least this many tokens, without </s>", least=0)
    unnormalized: bool = option(False, "compare the sums of the log-probabilities of hypotheses, not their means")
    lenpen: float = option(
        1.0, "the exponent of the length penalty; more than 1 favours longer texts", excludes="unnormalized"
    )
    unkpen: float = option(0.0, "subtract this from the log-probability of <unk>", most=math.inf)
    no_repeat_ngram_size: int = option(0, "repeat no n-gram of this many tokens within a text; 0 allows all", least=0)
    temperature: float = option(1.0, "divide logits by this number; above 1, probabilities become more equal", above=0)


@dataclass(frozen=True)
class Generation(Searched):
    """Options of generation; those that `Searched` does not have are of fairseq's generator alone."""

    match_source_len: bool = option(False, "make texts as long as their source")
    sampling: bool = option(False, "draw words instead of searching")
    sampling_topk: int = option(
        -1,
        "with --sampling: draw from this many most probable words; -1 for all",
        least=1,
        needs="sampling",
        excludes="sampling_topp",
    )
    sampling_topp: float = option(
        -1.0,
        "with --sampling: draw from the fewest words with this probability; -1 for all",
        above=0,
        most=1,
        needs="sampling",
    )
    diverse_beam_groups: int = option(
        -1,
        "the groups of diverse beam search, of which a single text mostly comes from the first; -1 for none",
        least=1,
    )
    diverse_beam_strength: float = option(
        0.5, "the penalty between groups of diverse beam search", needs="diverse_beam_groups"
    )
    diversity_rate: float = option(-1.0, "the penalty between siblings in diverse sibling search; -1 for none", least=0)


@dataclass(frozen=True)
class Drawn(Generation):
    """Options of generation, and the seed of a command."""

    seed: int = option(1, "the seed of --sampling", needs="sampling")


OPTIONS = options_of(Generation)
DEFAULTS = {name: each.default for name, each in OPTIONS.items()}
NOT_SEARCHED = [name for name in OPTIONS if name not in options_of(Searched)]
EXCLUSIVE = ("sampling", "diverse_beam_groups", "diversity_rate", "match_source_len")  # kinds of search


def check_options(options: Mapping[str, Any]) -> None:
    """Raises ValueError for an unknown option, or a value that an option cannot have."""
    for name, value in options.items():
        if name not in OPTIONS:
            raise ValueError(f"unknown generation option {name!r}; known are {', '.join(sorted(OPTIONS))}")
        OPTIONS[name].check(value)
    if options.get("no_repeat_ngram_size") == 1:
        text = "{no_repeat_ngram_size} would allow no word twice; use 2 or more, or 0 for no blocking"
        raise OptionError(text, no_repeat_ngram_size=1)


def check_json(options: Mapping[str, Any], source: str) -> None:
    """Checks options as `check_options`; in a file or a flag of JSON, the `source`, they are called as in Python."""
    with at(source), as_in_python():
        check_options(options)


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


def parse_generation_options(text: str, flag: str) -> dict[str, Any]:
    """Parses options such as beam or lenpen from the value of `flag`; ValueError if it is no JSON object of them."""
    try:
        options = parse_json(text)
    except ValueError as error:
        raise ValueError(f"{flag} {text}: not JSON ({error})") from None
    if not isinstance(options, dict):
        raise ValueError(f'{flag} {text}: expected a JSON object such as {{"beam": 4}}')
    check_json(options, flag)
    return options
