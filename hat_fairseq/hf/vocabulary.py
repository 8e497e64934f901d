"""A folder of hat_fairseq as the vocabulary of a tokenizer of transformers: dictionaries, ids to text, files."""

import logging
import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizer
from transformers.tokenization_utils_base import LARGE_INTEGER

from ..data import dictionary, pipeline
from ..data.dictionary import SPECIAL, Dictionary, find_dictionary
from ..data.files import Fields
from ..data.places import MASK
from ..model_folder import BIN, ORIGIN, TOKENIZER_MAP, as_bin, check_links, write_loader
from .config import HasLoader

# Files of `bin`; those of labels are for the commands of this package.
DATA = (pipeline.FILE_NAME, *chain(*dictionary.DICTIONARIES.values(), *pipeline.BPE_FILES.values()))
BESIDE = (*map("dict.{}.txt".format, dictionary.DICTIONARIES), *chain(*pipeline.BPE_FILES.values()), ORIGIN)
LOSSES = ("truncated", "lost", "removed", "replaced")  # in the names of counts of what a text loses

logger = logging.getLogger(__name__)


class Counts(Counter[str]):
    """Counts of what texts lose. A copy has none: a call must not change the pickle that `datasets` knows it by."""

    def __reduce__(self) -> Any:
        return Counts, ()


class Warned(set[str]):
    """The names of the warnings that were given. A copy has none, see `Counts`."""

    def __reduce__(self) -> Any:
        return Warned, ()


class VocabularyTokenizer(HasLoader, PreTrainedTokenizer):
    """The vocabulary of a folder, and generated ids to text.

    Args:
        pipeline_json: path of `pipeline.json`; the other files lie beside it. `beside`: the same, if this is None.
        limit: the longest row that the model takes, `</s>` included; a longer one is refused, unless it is cut.
        target_limit: the same of a target; where it is None, `config.json` in the folder may say it.
        uses_roles: the model reads the ids of roles.
        has_mask: the dictionary ends with `<mask>`, which its file does not have.
    """

    vocab_files_names = {"pipeline_json": f"{BIN}/{pipeline.FILE_NAME}", "beside": pipeline.FILE_NAME}
    vocab_files_names |= {name: name for name in (*(f"{BIN}/{name}" for name in DATA), *BESIDE)}
    model_input_names = ["input_ids", "attention_mask", "role_ids"]
    _auto_map = TOKENIZER_MAP

    def __init__(
        self,
        pipeline_json: str | None,
        limit: int | None = None,
        uses_roles: bool = False,
        has_mask: bool = False,
        beside: str | None = None,
        target_limit: int | None = None,
        **kwargs: Any,
    ):
        if (path := pipeline_json or beside) is None:
            raise ValueError(f"the folder has no {BIN}/{pipeline.FILE_NAME}: it has no tokenizer of hat_fairseq")
        folder = Path(path).parent
        self.folder = folder.parent if folder.name == BIN else folder
        self.data = as_bin(self.folder)
        self.pipeline = pipeline.TextPipeline.load(self.data)
        self.pipeline.settings = replace(self.pipeline.settings, roles=uses_roles)
        self.pipeline.counts = Counts()
        self.has_mask, self.target_limit = has_mask, target_limit
        source, target, roles = (find_dictionary(self.data, stream) for stream in ("source", "target", "role"))
        if source is None or (uses_roles and roles is None):
            raise ValueError(f"{self.data} has no dictionary of the {'source' if source is None else 'roles'}")
        self.source = load_dictionary(source, has_mask)
        self.target = load_dictionary(target, has_mask) if target else self.source
        self.roles = Dictionary.load(roles) if roles and uses_roles else None
        self._check_dictionaries()
        self._warned = Warned()
        names = ("bos_token", "pad_token", "eos_token", "unk_token")
        tokens = dict(zip(names, SPECIAL, strict=True)) | ({"mask_token": MASK} if has_mask else {})
        rest = {name: value for name, value in kwargs.items() if name not in self.vocab_files_names}
        for name, own_token in tokens.items():
            token = str(rest.get(name) or own_token)
            if token != own_token:
                raise ValueError(f"{name}={token!r}: the dictionary and the model have {own_token!r}; remove it")
        if (longest := smallest(limit, rest.pop("model_max_length", None))) is not None:
            rest["model_max_length"] = longest
        own = {"limit": limit, "uses_roles": uses_roles, "has_mask": has_mask, "target_limit": self.target_limit}
        super().__init__(**rest | tokens | own)

    def _check_dictionaries(self) -> None:
        """Compares the dictionaries with the model of the folder; ValueError if one has other symbols, or too many."""
        dictionaries = {"source": self.source, "target": self.target, "role": self.roles}
        if (origin := self.folder / ORIGIN).is_file():
            fields = Fields(Fields.read(origin).record.get("fingerprints", {}), str(origin))
            recorded = {name: fields.items(name, int) for name in fields.record}
            dictionary.check_fingerprints(recorded, dictionaries, self.folder)
        if (path := self.folder / "config.json").is_file():
            config = Fields.read(path).record
            for key, own in (("vocab_size", self.target), ("source_vocab_size", self.source)):
                if isinstance(size := config.get(key), int) and size < len(own):
                    raise ValueError(f"{path}: {key} is {size}, and the dictionary has {len(own)} symbols")
            if self.target_limit is None and config.get("is_encoder_decoder"):
                self.target_limit = config.get("max_target_positions")

    @property
    def limit(self) -> int | None:
        """Returns the longest row, `</s>` included: `model_max_length`, or None where there is none."""
        return None if self.model_max_length > LARGE_INTEGER else self.model_max_length

    @limit.setter
    def limit(self, longest: int) -> None:
        self.model_max_length = longest

    def add_special_tokens(self, special_tokens_dict: Any, *args: Any, **options: Any) -> int:
        """Names entries of the dictionary as special; ValueError for a token that it does not have."""
        values = special_tokens_dict.values()
        self._check_known(
            chain.from_iterable(value if isinstance(value, list | tuple) else [value] for value in values)
        )
        return int(super().add_special_tokens(special_tokens_dict, *args, **options))

    def _add_tokens(self, new_tokens: Any, special_tokens: bool = False) -> int:
        self._check_known(new_tokens)
        return int(super()._add_tokens(new_tokens, special_tokens))

    def _check_known(self, tokens: Iterable[Any]) -> None:
        """Raises ValueError for a token that the dictionary does not have."""
        if missing := [str(token) for token in tokens if str(token) not in self.target.ids]:
            raise ValueError(
                f"add_tokens: {missing[0]!r} is not in the dictionary, and the BPE would never make it of a text; "
                "train with a dictionary that has it"
            )

    def _decode(
        self,
        token_ids: Any,
        skip_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool | None = None,
        **options: Any,
    ) -> str:
        """Text of ids: BPE undone, words joined; a tab stands for each `<sep>`.

        Markers, padding and ids below 0, which collators pad labels with, are left out. `<unk>` and `<mask>` stay,
        unless `skip_special_tokens`. ValueError for an id beyond the dictionary, or another option.
        """
        if options:
            raise ValueError(f"unknown arguments {', '.join(options)} of decode")
        ids = [token_ids] if isinstance(token_ids, int) else [int(number) for number in token_ids]
        tokens = [self._convert_id_to_token(number) for number in ids if number >= 0]
        if skip_special_tokens:
            tokens = [token for token in tokens if token not in (*SPECIAL, MASK)]
        text = self.convert_tokens_to_string(tokens)
        return self.clean_up_tokenization(text) if clean_up_tokenization_spaces else text

    def convert_tokens_to_string(self, tokens: Iterable[str]) -> str:
        """Returns the text of tokens, of the target where there are targets."""
        side = "target" if self.pipeline.kind.has_target else "source"
        runs: list[list[str]] = [[]]
        for token in tokens:
            runs.append([]) if token == MASK else runs[-1].append(token)
        texts = [self.pipeline.decode(" ".join(run), side) for run in runs]
        return " ".join(filter(None, chain(texts[:1], *((MASK, text) for text in texts[1:]))))

    @property
    def vocab_size(self) -> int:
        return len(self.target)

    def get_vocab(self) -> dict[str, int]:
        """Returns the dictionary of the target, whose ids `decode` reads."""
        return dict(self.target.ids)

    def _convert_token_to_id(self, token: str) -> int:
        """Looks up a token of `tokenize`, which is one of the source."""
        return self.source.ids[token]

    def _convert_id_to_token(self, index: int) -> str:
        if not 0 <= index < len(self.target):
            raise ValueError(f"{index} is no id of the dictionary, which has 0 to {len(self.target) - 1}")
        return self.target.symbols[index]

    def save_vocabulary(self, save_directory: str, filename_prefix: str | None = None) -> tuple[str, ...]:
        """Copies the files of the folder; their names have no prefix, because the pipeline finds them by name.

        ValueError for a link among them: what it leads to may be private.
        """
        check_links(self.folder)
        write_loader(save_directory)
        copies = {self.folder / ORIGIN: Path(save_directory, ORIGIN)}
        copies |= {self.data / name: Path(save_directory, BIN, name) for name in DATA}
        copies = {path: copy for path, copy in copies.items() if path.is_file() and path.resolve() != copy.resolve()}
        for path, copy in copies.items():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
        return tuple(map(str, copies.values()))

    def _report(self, counts: Counter[str], verbose: bool) -> None:
        """Warns of what texts lose, once for each kind of loss."""
        lost = {name: n for name, n in counts.items() if n and any(word in name for word in LOSSES)}
        if new := {name: number for name, number in lost.items() if name not in self._warned}:
            listed = ", ".join(f"{name} {number}" for name, number in sorted(new.items()))
            self._warn(", ".join(new), f"texts lose: {listed}; tokenizer.pipeline.counts continues to count", verbose)
            self._warned |= set(new) if verbose else set()

    def _warn(self, name: str, message: str, verbose: bool) -> None:
        """Logs a warning the first time that it is given."""
        if verbose and name not in self._warned:
            self._warned.add(name)
            logger.warning(message)


def smallest(*limits: int | None) -> int | None:
    return min((each for each in limits if each is not None), default=None)


def load_dictionary(path: Path, has_mask: bool) -> Dictionary:
    counts = Dictionary.load(path).counts
    return Dictionary([*counts, (MASK, 1)] if has_mask else counts)
