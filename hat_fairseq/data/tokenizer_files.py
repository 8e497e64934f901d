"""A tokenizer as the files of its folder say it together; read as transformers reads them, which need not be there.

tokenizer.json, else vocab.txt                entries, and how a text becomes them
tokenizer_config.json                         for a tokenizer of BERT, lower case, accents and [CLS]; added tokens
special_tokens_map.json, added_tokens.json    further tokens, where tokenizer_config.json lists none
"""

import json
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from hat_fairseq.data.files import Fields, json_text, read_lines

TOKENIZER, VOCABULARY, SETTINGS = "tokenizer.json", "vocab.txt", "tokenizer_config.json"
CONTINUES = "##"  # begins an entry of WordPiece that begins no word
OF_BERT = ("Bert", "DistilBert", "Electra", "ConvBert", "SqueezeBert")  # whose tokenizers are BERT's
MODELS_OF_BERT = ("bert", "distilbert", "electra", "nomic_bert")  # which have it where no class is named
LISTS = ("additional_special_tokens", "extra_special_tokens")


def read_files(path: Path) -> Tokenizer:
    """Reads a `tokenizer.json` or a `vocab.txt`, and what the files beside it say of it."""
    settings, named = (_beside(path, name) for name in (SETTINGS, "special_tokens_map.json"))
    named = {} if "added_tokens_decoder" in settings else named
    if path.name == VOCABULARY:
        entries = {line.rstrip("\r"): number - 1 for number, line in read_lines(path)}
        tokenizer = Tokenizer(models.WordPiece(entries, unk_token=_name(settings | named, "unk")))
    else:
        tokenizer = Tokenizer.from_file(str(path))
    if _is_of_bert(path, settings) and isinstance(tokenizer.model, models.WordPiece):
        _make_bert(tokenizer, settings | named)
    tokenizer.add_tokens(list(_further(tokenizer, path, settings, named)))
    return tokenizer


def text_of(tokenizer: Tokenizer, control: Collection[str]) -> Tokenizer:
    """Returns the tokenizer for texts of any length: the `control` tokens are text, all others are found."""
    if {token.content for token in tokenizer.get_added_tokens_decoder().values() if token.special} - {*control}:
        record = json.loads(tokenizer.to_str())
        for token in record["added_tokens"]:
            token["special"] = token["content"] in control
        tokenizer = Tokenizer.from_str(json_text(record))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    return tokenizer


def _is_of_bert(path: Path, settings: Mapping[str, Any]) -> bool:
    """Tells whether transformers reads it with BERT's class, whose settings win; ValueError for words of another."""
    stated = str(settings.get("tokenizer_class") or "").removesuffix("Fast").removesuffix("Tokenizer")
    if path.name == VOCABULARY and stated not in ("", *OF_BERT):
        raise ValueError(f"{path}: its tokenizer_class is {stated}Tokenizer, whose words no {TOKENIZER} here makes")
    if stated or path.name == VOCABULARY:
        return stated in ("", *OF_BERT)
    return _beside(path, "config.json").get("model_type") in MODELS_OF_BERT


def _make_bert(tokenizer: Tokenizer, settings: Mapping[str, Any]) -> None:
    tokenizer.normalizer = normalizers.BertNormalizer(
        lowercase=bool(settings.get("do_lower_case", True)),
        strip_accents=settings.get("strip_accents"),
        handle_chinese_chars=bool(settings.get("tokenize_chinese_chars", True)),
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix=CONTINUES)
    first, last = (_name(settings, which) for which in ("cls", "sep"))
    if None not in (ends := [tokenizer.token_to_id(name) for name in (first, last)]):
        pairs = list(zip((first, last), ends, strict=True))
        pair = f"{first} $A {last} $B:1 {last}:1"
        tokenizer.post_processor = processors.TemplateProcessing(f"{first} $A {last}", pair, pairs)


def _further(tokenizer: Tokenizer, path: Path, settings: dict[str, Any], named: dict[str, Any]) -> Iterator[AddedToken]:
    """Yields the tokens that the files beside a tokenizer add to it, in the order of their rows."""
    both = settings | named
    special = [each for key, each in both.items() if key.endswith("_token") and isinstance(each, str | dict)]
    special += chain.from_iterable(both.get(key) or () for key in LISTS)
    names = {_content(each) for each in special}
    if "added_tokens_decoder" in settings:
        rows = {int(row): _added(token) for row, token in settings["added_tokens_decoder"].items()}
    else:
        others = _beside(path, "added_tokens.json")
        rows = {row: AddedToken(name, normalized=name not in names) for name, row in others.items()}
    known = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    yield from (token for _, token in sorted(rows.items()) if token.content not in known)
    known |= {token.content for token in rows.values()}
    yield from (AddedToken(name, special=True) for name in sorted((names - known) & tokenizer.get_vocab().keys()))


def _added(token: Mapping[str, Any]) -> AddedToken:
    return AddedToken(**{key: value for key, value in token.items() if not key.startswith("__")})


def _content(token: Any) -> str:
    return str(token["content"] if isinstance(token, dict) else token)


def _name(settings: Mapping[str, Any], which: str) -> str:
    return _content(settings.get(f"{which}_token") or f"[{which.upper()}]")


def _beside(path: Path, name: str) -> dict[str, Any]:
    return dict(Fields.read(path.with_name(name), optional=True).record)
