"""The options of a call of the tokenizer, under the names of transformers: each has an effect, or is refused."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from ..data.kinds import Kind
from ..data.options import POLICIES, WINDOWS, Settings
from ..options import as_in_python, check_values, option
from .documents import cut_part

PADDING = (True, False, "longest", "max_length", "do_not_pad")
TRUNCATION = (True, False, "longest_first", "only_first", "only_second", "do_not_truncate")
CHUNK = POLICIES[3]


@dataclass(frozen=True)
class CallOptions:
    """The options of a call; see `HatTokenizer.__call__`. ValueError for a value that is none of the possible ones."""

    add_special_tokens: bool = True
    padding: bool | str | None = None
    truncation: bool | str | None = None
    max_length: int | None = option(None, "the maximum number of tokens", least=1)
    max_target_length: int | None = option(None, "the maximum number of tokens of a target", least=1)
    stride: int | None = option(None, "the number of tokens that two windows share", least=0)
    is_split_into_words: bool = False
    pad_to_multiple_of: int | None = option(None, "pad rows to a multiple of this many tokens", least=1)
    padding_side: str | None = option(None, "the side on which rows are padded", ("left", "right"))
    return_tensors: Any = None
    return_token_type_ids: bool | None = None
    return_attention_mask: bool | None = None
    return_overflowing_tokens: bool = False
    return_special_tokens_mask: bool = False
    return_offsets_mapping: bool = False
    return_length: bool = False
    split_special_tokens: bool = False
    verbose: bool = True

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """Returns the options; ValueError for a name that a tokenizer does not have."""
        merged = {**options, **(options.get("tokenizer_kwargs") or {})}
        merged.pop("tokenizer_kwargs", None)
        known = {each.name for each in fields(cls)}
        if unknown := sorted(name for name, value in merged.items() if name not in known and value is not None):
            raise ValueError(f"unknown arguments {', '.join(unknown)}: limits and markers are those of the training")
        return cls(**{name: value for name, value in merged.items() if name in known and value is not None})

    def __post_init__(self) -> None:
        for name, value, known in (("padding", self.padding, PADDING), ("truncation", self.truncation, TRUNCATION)):
            if value is not None and value not in known:
                raise ValueError(f"{name}={value!r}: give one of {', '.join(map(repr, known))}")
        with as_in_python():
            check_values(CallOptions, self)
        if self.return_token_type_ids:
            raise ValueError("return_token_type_ids=True: these models have no types of tokens")
        if self.pad_to_multiple_of is not None and self.padding in (False, "do_not_pad"):
            raise ValueError(f"pad_to_multiple_of={self.pad_to_multiple_of} has no effect without padding")

    @property
    def pads(self) -> bool:
        """Returns whether rows get one length: by `padding`, or without it for tensors and multiples."""
        if self.padding is None:
            return self.return_tensors is not None or self.pad_to_multiple_of is not None
        return self.padding not in (False, "do_not_pad")

    @property
    def truncates(self) -> bool:
        """Returns whether long rows are cut; as in transformers, `max_length` alone asks for it."""
        if self.truncation is None:
            lengths = self.max_length, self.max_target_length
            return lengths != (None, None) and self.padding in (None, False)
        return self.truncation not in (False, "do_not_truncate")

    def check(self, kind: Kind, settings: Settings, side: str, has_pair: bool) -> None:
        """Raises ValueError for what would change the format of the training data.

        `side`: which one rows are cut on; `has_pair`: a document has two texts.
        """
        chunks = CHUNK in kind.policies or kind.packs
        if self.truncates and side != "right":
            raise ValueError(f"truncation_side={side!r}: rows keep their beginning, as in training")
        if self.truncates and self.return_overflowing_tokens and not (chunks or several_rows(kind)):
            raise ValueError(
                f"return_overflowing_tokens=True with truncation: the kind {kind.name} has no chunks, so what is cut "
                "off would be lost; remove one of them"
            )
        own = cut_part(kind, has_pair)
        if self.truncation in ("only_first", "only_second") and self.truncation != own:
            raise ValueError(f"truncation={self.truncation!r}: these rows of the kind {kind.name} are cut {own!r}")
        if self.stride:
            windows = WINDOWS in kind.options
            if not windows:
                raise ValueError(f"stride={self.stride}: rows of the kind {kind.name} do not overlap")
            chunked = settings.long_source == CHUNK and self.stride == settings.window_overlap
            if not chunked and not (self.truncates and self.return_overflowing_tokens):
                raise ValueError(
                    f"stride={self.stride} has an effect with truncation=True and return_overflowing_tokens=True"
                )


def several_rows(kind: Kind) -> bool:
    """Tells whether a record is several rows, whatever its length: its choices, or the two texts of a pair."""
    return bool(getattr(kind, "joins_rows", False))
