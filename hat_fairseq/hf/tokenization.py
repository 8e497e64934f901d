"""The text pipeline of hat_fairseq as a tokenizer of transformers: `<s>` before each sentence, words, BPE, limits.

It reads the folder that `hat export` writes, and gives the ids that `hat preprocess` gives, for every kind of data.
"""

import shutil
from collections import Counter
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from transformers import BatchEncoding, PreTrainedTokenizer

from ..data import dictionary, pipeline
from ..data.dictionary import EOS, PAD, SPECIAL, Dictionary, find_dictionary
from ..data.files import Fields, read_json
from ..data.records_json import record_from_json
from ..data.rows import Row
from ..model_folder import BIN, ORIGIN, TOKENIZER_MAP, as_bin, write_loader
from .config import HasLoader

# Files of `bin`; those of labels are for the commands of this package. Version 0.5 had them beside config.json.
DATA = (pipeline.FILE_NAME, *chain(*dictionary.DICTIONARIES.values(), *pipeline.BPE_FILES.values()))
BESIDE = (*map("dict.{}.txt".format, dictionary.DICTIONARIES), *chain(*pipeline.BPE_FILES.values()), ORIGIN)


class HatTokenizer(HasLoader, PreTrainedTokenizer):
    """Documents to ids, and generated ids to text.

    Args:
        pipeline_json: path of `pipeline.json`; the other files lie beside it. `beside`: the same, if this is None.
        limit: the longest row that the model takes, `</s>` included; a longer one is refused.
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
        **kwargs: Any,
    ):
        if (path := pipeline_json or beside) is None:
            raise ValueError(f"the folder has no {BIN}/{pipeline.FILE_NAME}: it has no tokenizer of hat_fairseq")
        folder = Path(path).parent
        self.folder, self.limit = folder.parent if folder.name == BIN else folder, limit
        self.data = as_bin(self.folder)
        self.pipeline = pipeline.TextPipeline.load(self.data)
        self.pipeline.settings = replace(self.pipeline.settings, roles=uses_roles)
        source, target, roles = (find_dictionary(self.data, stream) for stream in ("source", "target", "role"))
        if source is None or (uses_roles and roles is None):
            raise ValueError(f"{self.data} has no dictionary of the {'source' if source is None else 'roles'}")
        self.source = load_dictionary(source, has_mask)
        self.target = load_dictionary(target, has_mask) if target else self.source
        self.roles = Dictionary.load(roles) if roles and uses_roles else None
        self._check_dictionaries()
        names = ("bos_token", "pad_token", "eos_token", "unk_token")
        tokens = dict(zip(names, SPECIAL, strict=True)) | ({"mask_token": "<mask>"} if has_mask else {})
        rest = {name: value for name, value in kwargs.items() if name not in self.vocab_files_names}
        super().__init__(**rest | tokens | {"limit": limit, "uses_roles": uses_roles, "has_mask": has_mask})

    def _check_dictionaries(self) -> None:
        """Compares the dictionaries with the model of the folder; ValueError if one has other symbols, or too many."""
        dictionaries = {"source": self.source, "target": self.target, "role": self.roles}
        if (origin := self.folder / ORIGIN).is_file():
            fields = Fields(Fields(read_json(origin), str(origin)).record.get("fingerprints", {}), str(origin))
            recorded = {name: fields.items(name, int) for name in fields.record}
            dictionary.check_fingerprints(recorded, dictionaries, self.folder)
        if (path := self.folder / "config.json").is_file():
            config = Fields(read_json(path), str(path)).record
            for key, own in (("vocab_size", self.target), ("source_vocab_size", self.source)):
                if isinstance(size := config.get(key), int) and size < len(own):
                    raise ValueError(f"{path}: {key} is {size}, and the dictionary has {len(own)} symbols")

    def __call__(  # type: ignore[override]
        self,
        documents: list[Any],
        padding: bool | str = True,
        return_tensors: str | None = None,
        return_overflowing_tokens: bool = False,
        **unknown: Any,
    ) -> BatchEncoding:
        """Encodes documents as the training data were.

        Args:
            documents: of the forms that `rows` takes.
            padding: pad on the right: True or "longest" to the longest row, "max_length" to the longest that the model
                takes; False or "do_not_pad": not.
            return_tensors: "pt" for tensors.
            return_overflowing_tokens: a document may become several rows: chunks, windows, choices, the two of a pair.
        Returns:
            `input_ids` and `attention_mask` (B, T); `role_ids` (B, T) if the model has roles; with several rows a
            document `overflow_to_sample_mapping` (B,), the number of the document of each row.
        Raises:
            ValueError: a document that is empty or too long, or lacks roles; or an argument that is none of these.
        """
        if unknown := {name: value for name, value in unknown.items() if value is not None}:
            raise ValueError(f"unknown arguments {', '.join(unknown)}: limits and markers are those of the training")
        if isinstance(documents, str | dict):
            raise ValueError("give a list of documents: [document]")
        rows = [(n, row) for n, document in enumerate(documents) for row in self.rows(document, n + 1)]
        owners = [number for number, _ in rows]
        for number, count in Counter(owners).items():
            if count > 1 and not return_overflowing_tokens:
                raise ValueError(
                    f"document {number + 1} becomes {count} rows: give return_overflowing_tokens=True "
                    "(overflow_to_sample_mapping says which rows are of which document)"
                )
        columns = {"input_ids": [[*map(self.source.numbers.__getitem__, row.tokens), EOS] for _, row in rows]}
        columns["attention_mask"] = [[1] * len(ids) for ids in columns["input_ids"]]
        if self.roles is not None:
            numbers = self.roles.numbers
            columns["role_ids"] = [[*map(numbers.__getitem__, row.streams["role"]), EOS] for _, row in rows]
        if (longest := self._padded_length(padding, columns["input_ids"])) is not None:
            for name, column in columns.items():
                fill = 0 if name == "attention_mask" else PAD
                columns[name] = [ids + [fill] * (longest - len(ids)) for ids in column]
        more = {"overflow_to_sample_mapping": owners} if return_overflowing_tokens else {}
        return BatchEncoding(columns | more, tensor_type=return_tensors)

    def _padded_length(self, padding: bool | str, rows: list[list[int]]) -> int | None:
        """Returns the length of padded rows, None for no padding; ValueError for another `padding` or no limit."""
        if padding == "max_length":
            if self.limit is None:
                raise ValueError('padding="max_length": this tokenizer has no limit; give padding=True')
            return self.limit
        if padding in (False, "do_not_pad"):
            return None
        if padding in (True, "longest"):
            return max(map(len, rows), default=0)
        raise ValueError(f"padding={padding!r}: give True, False, 'longest', 'max_length' or 'do_not_pad'")

    def rows(self, document: Any, number: int = 1) -> list[Row]:
        """Returns the rows of a document, without `</s>`; `Row` says what each token stands for.

        Args:
            document: a list of sentences, segments or words; a list of turns `{"role", "text"}`; running text, which is
                split as the training data were; or a dictionary with the keys of docs/data.md for the kind of the data.
            number: names the document in messages.
        """
        kind = self.pipeline.kind
        if isinstance(document, str):
            document = {"text": document}
        elif not isinstance(document, dict):
            key = "turns" if any(isinstance(turn, dict) for turn in document) else kind.record.list_key()
            document = {key: list(document)}
        record = record_from_json({"id": str(number), **document}, f"document {number}", kind)
        rows = self.pipeline.encode(replace(record, origin=None))
        longest = max(len(row.tokens) + 1 for row in rows)
        if self.limit is not None and longest > self.limit:
            raise ValueError(f"document {number}: {longest} tokens are more than the model takes, {self.limit}")
        return rows

    def _decode(self, token_ids: Any, *unused: Any, **options: Any) -> str:
        """Text of generated ids: BPE undone, words joined; a tab stands for each `<sep>`; of the rest `<unk>` stays."""
        ids = [token_ids] if isinstance(token_ids, int) else token_ids
        return self.convert_tokens_to_string([self._convert_id_to_token(number) for number in ids])

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        return self.pipeline.decode(" ".join(tokens))

    @property
    def vocab_size(self) -> int:
        return len(self.target)

    def get_vocab(self) -> dict[str, int]:
        return dict(self.target.numbers)

    def _convert_token_to_id(self, token: str) -> int:
        return self.target.numbers[token]

    def _convert_id_to_token(self, index: int) -> str:
        return self.target.symbols[index]

    def save_vocabulary(self, save_directory: str, filename_prefix: str | None = None) -> tuple[str, ...]:
        """Copies the files of the folder; their names have no prefix, because the pipeline finds them by name."""
        write_loader(save_directory)
        copies = {self.folder / ORIGIN: Path(save_directory, ORIGIN)}
        copies |= {self.data / name: Path(save_directory, BIN, name) for name in DATA}
        copies = {path: copy for path, copy in copies.items() if path.is_file() and path.resolve() != copy.resolve()}
        for path, copy in copies.items():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
        return tuple(map(str, copies.values()))


def load_dictionary(path: Path, has_mask: bool) -> Dictionary:
    counts = Dictionary.load(path).counts
    return Dictionary([*counts, ("<mask>", 1)] if has_mask else counts)
