"""Proves an import: ids of texts and states of documents are those of the folder's own tokenizer and model.

transformers' AutoTokenizer reads the tokenizer, or without transformers `tokenizers` the same files; states need
transformers. What differs is refused, and what could not be compared is said.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..data.bpe import Bpe
from ..data.dictionary import BOS, EOS, PAD, SPECIAL, UNKNOWN
from ..data.files import read_json
from ..data.tokenizer_bpe import MASK
from ..data.tokenizer_files import TOKENIZER, VOCABULARY, read_files
from ..model_folder import CONFIG
from .rename import Converted, meta_model, parse_flags
from .tables import SOURCE

LARGEST = 1e-4  # difference of two states, as a part of the largest one
LENGTHS = 300, 40  # tokens of the documents: more than the usual windows, and fewer
SHORT = 12  # tokens that each text is also truncated to
UNCHECKED = "nothing compared (--unchecked)"
ANYWAY = "not imported; --unchecked imports it all the same"
PROBES = (
    "",
    "The Council met on MONDAY; it's 12.5% of £1,250,000?",
    "Élan vital, naïve café, İstanbul, Straße, ΑΒΓ, Москва, ｆｕｌｌ ﬁ",
    "会議は東京で3時に始まった。中文字 한국어 हिन्दी العربية ไทย",
    "two  spaces,   three\ta tab\na line\n\nand  a paragraph ",
    "don't re-enter http://example.org/a_b?c=1 #tag @name x<y && z 😀👩‍👩‍👧",
    "one two three four five six seven eight nine ten " * 4,
)
# Classes of transformers for folders whose config.json names another one.
NAMES_OF_CODE = ("model_type", "auto_map")
PEERS = {"gte": "GteModel", "jina_v3": "JinaEmbeddingsV3Model"}
WITHOUT_PEER = ("hierarchical_transformer",)
IdsOf = Callable[[str, int | None], list[int]]


def prove_ids(folder: Path, bpe: Bpe, symbols: Sequence[str], rows: Sequence[int | None], has_ends: bool) -> str:
    """Compares ids of texts, also truncated; returns a line about it. ValueError names the first text that differs.

    Args:
        symbols, rows: the entries of the dictionary, and the row of the release for each, and for special symbols.
        has_ends: a text has `<s>` and `</s>`.
    """
    number = dict(zip([*SPECIAL, *symbols, MASK], rows, strict=False))
    files = [folder / name for name in (TOKENIZER, VOCABULARY) if (folder / name).is_file()]
    with quiet_transformers() as whose:
        if not (whose or files):
            return f"ids not compared: transformers is not installed, and there is no {TOKENIZER}"
        expected, added = peer_tokenizer(folder, has_ends) if whose else files_alone(files[0], has_ends)
        whose = whose or "tokenizers"
        found = sorted(added - {MASK, *SPECIAL, *getattr(bpe, "control", ())})
        texts = [*PROBES, *(text for name in found for text in (f"a {name} b", f"a{name}b"))]
        for text in texts:
            inner = [number.get(token, number[SPECIAL[UNKNOWN]]) for token in bpe.encode(text)]
            ids = [number[SPECIAL[BOS]], *inner, number[SPECIAL[EOS]]] if has_ends else inner
            check_ids(folder, text, ids, expected(text, None), whose)
            if has_ends and len(ids) > SHORT:
                check_ids(folder, text, [*ids[: SHORT - 1], ids[-1]], expected(text, SHORT), whose)
    return f"ids of {len(texts)} texts equal those of {whose}"


def check_ids(folder: Path, text: str, ids: list[int | None], expected: list[int], whose: str) -> None:
    """Raises ValueError where they differ, with the first difference."""
    if ids == expected:
        return
    if expected in (ids[1:-1], ids[1:], ids[:-1]):
        why = f"the post_processor of its tokenizer adds no {'[CLS]' if expected[:1] != ids[:1] else '[SEP]'}"
    else:
        place = next((n for n, (own, its) in enumerate(zip(ids, expected, strict=False)) if own != its), len(ids))
        why = f"from token {place} on {ids[place : place + 3]} in place of {expected[place : place + 3]}"
    raise ValueError(f"{folder}: the ids of {text!r:.80} are not those of {whose} ({why}): {ANYWAY}")


def peer_tokenizer(folder: Path, has_ends: bool) -> tuple[IdsOf, set[str]]:
    """Returns what transformers makes of a text, and the names of its added tokens; ValueError if it cannot."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:
        raise ValueError(f"{folder}: transformers reads no tokenizer from it ({one_line(error)}): {ANYWAY}") from error

    def ids_of(text: str, most: int | None) -> list[int]:
        cut = {} if most is None else {"truncation": True, "max_length": most}
        return list(tokenizer(text, add_special_tokens=has_ends, **cut)["input_ids"])

    return ids_of, {*tokenizer.get_added_vocab()}


def files_alone(path: Path, has_ends: bool) -> tuple[IdsOf, set[str]]:
    """Does the same with `tokenizers`, from the same files."""
    tokenizer = read_files(path)
    tokenizer.no_padding()

    def ids_of(text: str, most: int | None) -> list[int]:
        tokenizer.no_truncation() if most is None else tokenizer.enable_truncation(most)
        return list(tokenizer.encode(text, add_special_tokens=has_ends).ids)

    return ids_of, {token.content for token in tokenizer.get_added_tokens_decoder().values()}


def prove_states(folder: Path, family: str, converted: Converted, rows: Sequence[int | None]) -> str:
    """Compares the states of two padded documents, in fp32; returns a line about it. ValueError if they differ."""
    with quiet_transformers() as whose:
        if not whose or family in WITHOUT_PEER:
            return f"states not compared: {'no class of transformers' if whose else 'transformers is not installed'}"
        ours, theirs = draw(converted.starts[0], rows)
        try:
            expected = peer_states(folder, family, theirs, ours.ne(PAD))
        except Exception as error:
            return f"states not compared: {whose} cannot read the folder ({one_line(error)})"
    states, expected = (each[ours.ne(PAD)] for each in (own_states(converted, ours, len(rows)), expected))
    difference = (states - expected).abs().max() / expected.abs().max()
    if not difference <= LARGEST:
        raise ValueError(f"{folder}: states differ from those of {whose} by {difference:.0e}: {ANYWAY}")
    return f"states equal those of {whose} to {f'{difference:.0e}' if difference else 'the last bit'}"


def draw(flags: list[str], rows: Sequence[int | None]) -> tuple[Tensor, Tensor]:
    """Draws two documents, the second one padded: their numbers here, and their rows there."""
    args = parse_flags(flags)
    longest = getattr(args, "max_positions", None) or min(args.max_source_positions, args.max_target_positions)
    lengths = [min(length, longest) for length in LENGTHS]
    generator = torch.Generator().manual_seed(1)
    ours = torch.full((2, max(lengths)), PAD)
    for row, length in zip(ours, lengths, strict=True):
        row[:length] = torch.randint(len(SPECIAL), len(rows) - 1, (length,), generator=generator)
        row[0], row[length - 1] = BOS, EOS
    return ours, torch.tensor([0 if row is None else row for row in rows])[ours]


@torch.no_grad()
def peer_states(folder: Path, family: str, ids: Tensor, mask: Tensor) -> Tensor:
    """Computes the states of the folder's own model; ValueError if its class does not find all tensors."""
    import transformers

    peer = getattr(transformers, PEERS.get(family, "AutoModel"))
    options: dict[str, Any] = {"trust_remote_code": False}
    if family in PEERS:
        stated = {key: value for key, value in read_json(folder / CONFIG).items() if key not in NAMES_OF_CODE}
        options = {"config": peer.config_class.from_dict(stated)}
    options |= {"dtype": torch.float32, "local_files_only": True, "output_loading_info": True}
    model, info = peer.from_pretrained(folder, **options)
    if missing := sorted(name for name in info["missing_keys"] if "pooler" not in name):
        raise ValueError(f"it does not find {len(missing)} tensors, such as {missing[0]}")
    more = {"decoder_input_ids": ids[:1].expand_as(ids)} if model.config.is_encoder_decoder else {}
    return Tensor(model.eval()(input_ids=ids, attention_mask=mask.long(), **more).last_hidden_state)


@torch.no_grad()
def own_states(converted: Converted, tokens: Tensor, rows: int) -> Tensor:
    """Computes those of the converted weights."""
    model = meta_model([*converted.starts[0], "--no-hierarchy"], converted.model, rows, "cpu").eval()
    model.load_state_dict({name: each for name, each in converted.model.items() if name != SOURCE}, strict=False)
    if hasattr(model, "decoder"):
        return Tensor(model(tokens, tokens.ne(PAD).sum(1), tokens[:1].expand_as(tokens), features_only=True)[0])
    return Tensor(model(tokens, features_only=True)[0])


@contextmanager
def quiet_transformers() -> Iterator[str]:
    """Gives the name and version of transformers, which says nothing meanwhile; an empty text without it."""
    try:
        import transformers
    except ImportError:
        yield ""
        return
    logging, before = transformers.utils.logging, transformers.utils.logging.get_verbosity()
    bars = logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield f"transformers {transformers.__version__}"
    finally:
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()


def one_line(error: Exception) -> str:
    """Returns the beginning of what an error says."""
    return f"{type(error).__name__}: {' '.join(str(error).split()):.200}"
