"""How the vectors of an encoder are made, as a folder for sentence-transformers says it (Reimers and Gurevych 2019).

`hat import --package` reads it beside the weights, and the folder that it writes has it in `embedding.json`:

modules.json                        a Transformer, a Pooling, and where vectors have length 1, a Normalize
1_Pooling/config.json               the pooling: the mean of all tokens, or the state of [CLS]
sentence_bert_config.json           how many tokens of a text are read
config_sentence_transformers.json   prompts before texts, and the similarity of two vectors
"""

import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Self

from ..data.files import Fields, json_text, read_json

FILE_NAME = "embedding.json"
MODULES, PROMPTS, TOKENIZER_CONFIG = "modules.json", "config_sentence_transformers.json", "tokenizer_config.json"
LENGTHS = re.compile(r"sentence_\w+_config\.json")  # sentence_roberta_config.json in folders of 2020
CHAIN = ("Transformer", "Pooling", "Normalize")  # the modules that are computed here, in this order
OF_SENTENCE_TRANSFORMERS = {"mean": "mean", "cls": "marker"}  # of sentence-transformers -> of `hat embed`
OLD_POOLING = "pooling_mode_"  # the keys of Pooling before version 5
SIMILARITIES = ("cosine", "dot", "euclidean", "manhattan")
LEAST, UNLIMITED = 3, 10**9  # tokens of a text; transformers writes 10**30 where there is no limit
QUERY, DOCUMENT = ("query",), ("document", "passage", "corpus")  # the names of their prompts, the first of which counts


@dataclass(frozen=True)
class VectorSettings:
    """How vectors are made.

    Attributes:
        pooling: `mean` or `marker`; None: nothing is known, and `hat embed` chooses.
        scaled: vectors have length 1.
        longest: tokens of a text that are read, with `<s>` and `</s>`; None: as many as the model reads.
        prompts: texts that are put before others, by their names.
        default_prompt: the name of the one that a text gets that is neither query nor document.
        similarity: one of `SIMILARITIES`.
        compared: what `hat import` has compared with the release.
    """

    pooling: str | None = None
    scaled: bool = False
    longest: int | None = None
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt: str | None = None
    similarity: str = SIMILARITIES[0]
    compared: str = ""

    @classmethod
    def read(cls, folder: str | Path) -> Self:
        """Reads those of the folder of a model; the defaults without a file. ValueError for a damaged one."""
        path = Path(folder) / FILE_NAME
        if not path.is_file():
            return cls()
        record = Fields.read(path, [item.name for item in fields(cls)])
        try:
            return cls(**record.record)
        except TypeError as error:
            raise record.error(f"no settings of vectors: {error}") from error

    def save(self, folder: Path) -> None:
        (folder / FILE_NAME).write_text(json_text(asdict(self), indent=1) + "\n", encoding="utf-8")

    def __str__(self) -> str:
        pooling = "the state of [CLS]" if self.pooling == "marker" else "the mean of all tokens"
        length = f", texts of at most {self.longest:,} tokens" if self.longest else ""
        prompts = ", ".join(f"{name} {text!r}" for name, text in self.prompts.items() if text)
        return f"{pooling}{', of length 1' * self.scaled}{length}; prompts: {prompts or 'none'}"

    def prompt(self, names: tuple[str, ...]) -> str:
        """Returns the first prompt that there is; an empty one without."""
        return next((self.prompts[name] for name in names if name in self.prompts), "")


def keep(source: Path, target: Path) -> None:
    """Copies the settings of a folder that is written anew, if it has any."""
    if (source / FILE_NAME).is_file():
        shutil.copyfile(source / FILE_NAME, target / FILE_NAME)


def of_release(directory: Path, lowers: bool) -> VectorSettings:
    """Reads those of a folder for sentence-transformers; mean pooling without `modules.json`, as there.

    `lowers`: the tokenizer makes letters small. ValueError for a module, a pooling or a setting that is not computed
    here, and for a damaged file.
    """
    pooling, scaled = _modules(directory)
    prompts = Fields.read(directory / PROMPTS, optional=True)
    if prompts.record.get("truncate_dim") is not None:
        raise prompts.error(f"truncate_dim {prompts.record['truncate_dim']!r:.20}: vectors are not shortened here")
    stated = prompts.record.get("prompts") or {}
    if not isinstance(stated, Mapping) or not all(isinstance(text, str) for text in stated.values()):
        raise prompts.error(f"prompts must be texts by their names, not {stated!r:.80}")
    similarity = prompts.record.get("similarity_fn_name") or SIMILARITIES[0]
    if similarity not in SIMILARITIES:
        raise prompts.error(f"similarity_fn_name {similarity!r:.40}: choose one of {', '.join(SIMILARITIES)}")
    default = prompts.record.get("default_prompt_name")
    if default is not None and default not in stated:
        raise prompts.error(f"default_prompt_name {default!r:.40} is none of its prompts: {', '.join(stated)}")
    return VectorSettings(pooling, scaled, _longest(directory, lowers), dict(stated), default, similarity)


def _modules(directory: Path) -> tuple[str, bool]:
    """Returns the pooling, and whether vectors are scaled."""
    path = directory / MODULES
    if not path.is_file():
        return OF_SENTENCE_TRANSFORMERS["mean"], False
    modules = [Fields(each, str(path)) for each in Fields({"all": read_json(path)}, str(path)).get("all", list)]
    names = [module.text("type").rpartition(".")[2] for module in modules]
    if names not in ([*CHAIN[:2]], [*CHAIN]):
        raise ValueError(
            f"{path} has the modules {', '.join(names)}; only {', '.join(CHAIN[:2])} and then {CHAIN[2]} are computed "
            f"here: take another model, or import the encoder alone, without {MODULES} beside it"
        )
    places = [Path(module.text("path")) for module in modules]
    if places[0] != Path():
        raise ValueError(f"{path} has the encoder in {places[0]}: move the files of that folder beside {MODULES}")
    if places[1].is_absolute() or ".." in places[1].parts:
        raise ValueError(f"{path} names {places[1]}, which is outside of the folder")
    return _pooling(directory / places[1] / "config.json"), len(names) == len(CHAIN)


def _pooling(path: Path) -> str:
    """Returns the pooling of its configuration; ValueError for one that is not computed here."""
    config = Fields.read(path)
    old = [
        key.removeprefix(OLD_POOLING) for key, value in config.record.items() if key.startswith(OLD_POOLING) and value
    ]
    stated = config.record.get("pooling_mode", [name.removesuffix("_token").removesuffix("_tokens") for name in old])
    names = [stated] if isinstance(stated, str) else list(stated or ["mean"])
    if len(names) != 1 or names[0] not in OF_SENTENCE_TRANSFORMERS:
        raise config.error(
            f"the pooling {' + '.join(map(str, names))} is none of {', '.join(OF_SENTENCE_TRANSFORMERS)}"
        )
    if not config.record.get("include_prompt", True):
        raise config.error("include_prompt is false: here the tokens of a prompt count, too")
    return OF_SENTENCE_TRANSFORMERS[names[0]]


def _longest(directory: Path, lowers: bool) -> int | None:
    """Returns how many tokens of a text are read; ValueError where small letters are wanted and not made."""
    lengths = next((path for path in sorted(directory.iterdir()) if LENGTHS.fullmatch(path.name)), directory / "none")
    config = Fields.read(lengths, optional=True)
    if config.record.get("do_lower_case") and not lowers:
        raise config.error("do_lower_case: the tokenizer keeps capital letters, and texts are not changed here")
    known = Fields.read(directory / TOKENIZER_CONFIG, optional=True).record.get("model_max_length")
    stated = config.record.get("max_seq_length") or known
    return int(stated) if isinstance(stated, int | float) and LEAST <= stated < UNLIMITED else None
