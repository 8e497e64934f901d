"""The text pipeline of hat_fairseq as a tokenizer of transformers: `<s>` before each sentence, words, BPE.

It reads `pipeline.json`, the dictionaries and the files of the BPE beside it. The modules that it imports from there
are those of hat_fairseq. Needs tokenizers and transformers; sacremoses, jieba, sentence-splitter or sentencepiece only
where the data were made with them.
"""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import BatchEncoding, PreTrainedTokenizer

from .detokenize import detokenize  # noqa: F401  `word_tokenizer` needs the file: it is copied because it is named here
from .dictionary import EOS, SPECIAL, UNKNOWN, Dictionary
from .long_input import POLICIES, SEPARATORS, LongInputError, fit, fit_parts
from .packing import pack_segments
from .text import (
    CONTROL_TOKENS,
    SEPARATOR,
    escape_control_tokens,
    normalise,
    restore_control_tokens,
    split_sentences,
)
from .word_tokenizer import SPACE_AFTER_SENTENCE, WITHOUT_SPACES, word_tokenizer

PAD, MARKER = 1, SPECIAL[0]
FILES = {
    "pipeline_file": "pipeline.json",
    "source_file": "dict.source.txt",
    "target_file": "dict.target.txt",
    "role_file": "dict.role.txt",
    "codes_file": "bpe.codes",
    "encoder_file": "encoder.json",
    "merges_file": "vocab.bpe",
    "sentencepiece_file": "sentencepiece.bpe.model",
    "label_file": "dict.label.txt",  # this and the next one are kept for `hat import hat_fairseq`
    "origin_file": "hat_fairseq.json",
}
Encode, Decode = Callable[[str], list[str]], Callable[[list[str]], str]


class HatFairseqTokenizer(PreTrainedTokenizer):
    """Documents to ids, and generated ids to text.

    Args:
        limits: pairs of the most tokens of a source, `</s>` not counted, and what to do with a longer one: `error`,
            `truncate`, `truncate-sentences` or `chunk` (an error here: one document is one row).
        row_limit: the most tokens of a row of data with labels, `</s>` included, and `error` or `truncate`.
        uses_roles: the model reads the ids of roles.
        has_mask: the dictionary ends with `<mask>`, which its file does not have.
    """

    vocab_files_names = FILES
    model_input_names = ["input_ids", "attention_mask", "role_ids"]

    def __init__(
        self,
        pipeline_file: str,
        source_file: str,
        target_file: str | None = None,
        role_file: str | None = None,
        codes_file: str | None = None,
        encoder_file: str | None = None,
        merges_file: str | None = None,
        sentencepiece_file: str | None = None,
        label_file: str | None = None,
        origin_file: str | None = None,
        limits: Iterable[tuple[int, str]] = (),
        row_limit: tuple[int, str] | None = None,
        uses_roles: bool = False,
        has_mask: bool = False,
        **kwargs: Any,
    ):
        record = json.loads(Path(pipeline_file).read_text(encoding="utf-8"))
        given = (pipeline_file, source_file, target_file, role_file)
        given = (*given, codes_file, encoder_file, merges_file, sentencepiece_file, label_file, origin_file)
        self.files = [Path(path) for path in given if path is not None]
        self.text_settings, self.limits = record["settings"], [(int(most), policy) for most, policy in limits]
        self.row_limit = row_limit
        self.source = load_dictionary(source_file, has_mask)
        self.target = load_dictionary(target_file or source_file, has_mask)
        self.roles = Dictionary.load(role_file) if uses_roles and role_file else None
        self.separator = ""
        kind = record["bpe"]["kind"]
        if kind == "learned":
            self.bpe_encode, self.bpe_decode = learned_bpe(codes_file)
        elif kind == "gpt2":
            self.bpe_encode, self.bpe_decode = gpt2_bpe(encoder_file, merges_file)
            self.separator = " "
        else:
            self.bpe_encode, self.bpe_decode = sentencepiece_bpe(sentencepiece_file)
        names = ("bos_token", "pad_token", "eos_token", "unk_token")
        tokens = dict(zip(names, SPECIAL, strict=True)) | ({"mask_token": "<mask>"} if has_mask else {})
        kwargs = {
            "limits": self.limits,
            "row_limit": row_limit,
            "uses_roles": uses_roles,
            "has_mask": has_mask,
            **kwargs,
            **tokens,
        }
        super().__init__(**kwargs)

    # Documents to ids

    def __call__(
        self, documents: list[Any], padding: bool = True, return_tensors: str | None = None, **unknown: Any
    ) -> BatchEncoding:
        """Encodes documents as the training data were.

        Args:
            documents: each a list of sentences or segments; a list of turns `{"role", "text"}`; running text, which is
                split as the training data were, or at line ends if these had given sentences; or a dictionary with the
                keys of docs/data.md: `text`, `sentences`, `turns` and `question`, or `text`, `segments` and `second`.
            padding: pad on the right to the longest document.
            return_tensors: "pt" for tensors.
        Returns:
            `input_ids` and `attention_mask` (B, T), and `role_ids` (B, T) if the model has roles.
        Raises:
            ValueError: a document that is empty or too long, lacks roles, or an argument that is none of these.
        """
        if unknown := {name: value for name, value in unknown.items() if value is not None}:
            raise ValueError(f"unknown arguments {', '.join(unknown)}: limits and markers are those of the training")
        if isinstance(documents, str | dict):
            raise ValueError("give a list of documents: [document]")
        rows = [self.encode_document(document, f"document {n}") for n, document in enumerate(documents, start=1)]
        columns = {"input_ids": [ids for ids, _ in rows]}
        columns["attention_mask"] = [[1] * len(ids) for ids, _ in rows]
        if self.roles is not None:
            columns["role_ids"] = [roles for _, roles in rows]
        if padding:
            longest = max(map(len, columns["input_ids"]), default=0)
            fill = {"attention_mask": 0}
            for name, column in columns.items():
                columns[name] = [row + [fill.get(name, PAD)] * (longest - len(row)) for row in column]
        return BatchEncoding(columns, tensor_type=return_tensors)

    def encode_document(self, document: Any, where: str) -> tuple[list[int], list[int]]:
        """Ids of tokens, and of roles (empty without them), of one document; `where` names it in messages."""
        if self.text_settings["kind"] == "text":
            tokens, role_ids = self.text_row(document, where)
        else:
            tokens, role_ids = self.labelled_row(document, where), []
        return [*map(self.source.numbers.__getitem__, tokens), EOS], [*role_ids, EOS] if self.roles is not None else []

    def text_row(self, document: Any, where: str) -> tuple[list[str], list[int]]:
        """A row of the kind `text`."""
        settings = self.text_settings
        sentences, roles = self.sentences(document, where)
        pairs = [tuple(normalise(text, Counter()) for text in pair) for pair in zip(sentences, roles, strict=True)]
        pairs = [(sentence, role) for sentence, role in pairs if sentence]
        if not pairs:
            raise ValueError(f"{where} is empty: no sentence with text in it")
        if (self.roles is not None or settings["role_in_text"]) and not all(role for _, role in pairs):
            raise ValueError(f'{where}: the model needs a role for each sentence; give turns {{"role", "text"}}')
        texts = [f"{role} : {sentence}" if settings["role_in_text"] else sentence for sentence, role in pairs]
        tokens, role_ids = [], []
        for pieces, (_, role) in zip(self.pieces(texts), pairs, strict=True):
            tokens += [MARKER, *pieces]
            if self.roles is not None:
                name = escape_control_tokens("_".join(role.split()))
                if (role_id := self.roles.numbers[name]) == UNKNOWN:
                    raise ValueError(f"{where} has the role {role!r}, which the model does not know")
                role_ids += [role_id] * (1 + len(pieces))
        for most, policy in self.limits:
            if policy == "chunk" and len(tokens) > most:
                raise ValueError(
                    f"{where}: {len(tokens)} tokens are more than {most}; hat summarize makes chunks of it"
                )
            try:
                ((kept, *_), _) = fit(is_marker(tokens), most, policy)
            except LongInputError:
                raise ValueError(f"{where}: {len(tokens)} tokens are more than {most}; shorten it") from None
            tokens, role_ids = tokens[kept], role_ids[kept]
        return tokens, role_ids

    def labelled_row(self, document: Any, where: str) -> list[str]:
        """A row of the kinds `classification` and `mlm`: one part, or two with `</s> </s>` between them."""
        document = document if isinstance(document, dict) else {"text": document}
        keys = [key for key in ("text", "segments") if key in document]
        if len(keys) != 1 or document.keys() - {*keys, "second", "label", "id", "meta"}:
            raise ValueError(f"{where}: give text or segments, with or without second")
        parts = [self.marked(document[keys[0]], True, where)]
        if "second" in document:
            parts.append(self.marked(document["second"], False, where))
        try:
            for most, policy in self.limits:
                ends, _ = fit_parts([is_marker(part) for part in parts], most, policy, None, POLICIES[1:3])
                parts = [part[:end] for part, end in zip(parts, ends, strict=True)]
        except LongInputError as error:
            raise ValueError(f"{where} is too long: {error}") from None
        if self.row_limit is not None:
            most, policy = self.row_limit
            surplus = sum(map(len, parts)) + SEPARATORS * (len(parts) - 1) + 1 - most
            longest = max(parts, key=len)
            if surplus > 0 and (policy == "error" or surplus >= len(longest)):
                raise ValueError(f"{where}: {most + surplus} tokens are more than the model takes, {most}; shorten it")
            del longest[len(longest) - max(0, surplus) :]
        return [token for number, part in enumerate(parts) for token in [*[SPECIAL[EOS]] * 2 * (number > 0), *part]]

    def marked(self, text: Any, is_main: bool, where: str) -> list[str]:
        """The tokens of a part, a marker before each segment."""
        settings, given = self.text_settings, self.text_settings["splitter"] == "given"
        sentences = [normalise(each, Counter()) for each in ([text] if isinstance(text, str) else text)]
        if not any(sentences):
            raise ValueError(f"{where} has an empty part: no sentence with text in it")
        whole = settings["segments"] == "none" and settings["kind"] != "mlm"
        if isinstance(text, str) and not (whole or (given and not is_main)):
            sentences = self.sentences(text, where)[0]
            sentences = [normalise(each, Counter()) for each in sentences]
        units = self.pieces(list(filter(None, sentences)))
        if settings["segments"] == "packed":
            units = pack_segments(units, settings["segment_length"] - 2)
        elif settings["segments"] == "none":
            units = [[token for unit in units for token in unit]]
        return [token for unit in units for token in (MARKER, *unit)]

    def pieces(self, sentences: list[str]) -> list[list[str]]:
        """The tokens of each of the clean sentences of a part."""
        words = word_tokenizer(self.text_settings["source_tokenizer"], self.text_settings["source_language"])
        ready = [words.tokenize(escape_control_tokens(sentence)) for sentence in sentences]
        return [self.bpe_encode(text if i == 0 else self.separator + text) for i, text in enumerate(ready)]

    def sentences(self, document: Any, where: str) -> tuple[list[str], list[str]]:
        """The sentences of a document, and their roles, empty strings without."""
        if isinstance(document, dict):
            keys = [key for key in ("text", "sentences", "turns") if key in document]
            if len(keys) != 1 or document.keys() - {*keys, "question", "id", "meta"}:
                raise ValueError(f"{where}: give one of text, sentences and turns, with or without question")
            sentences, roles = self.sentences(document[keys[0]], where)
            if "question" in document:
                return [document["question"], *sentences], ["question", *roles]
            return sentences, roles
        if isinstance(document, str):
            if self.text_settings["splitter"] == "given":
                sentences = document.splitlines()
            else:
                language = self.text_settings["source_language"]
                sentences = split_sentences(normalise(document, Counter()), self.text_settings["splitter"], language)
            return sentences, [""] * len(sentences)
        if all(isinstance(turn, dict) for turn in document):
            return [turn["text"] for turn in document], [turn["role"] for turn in document]
        return list(document), [""] * len(document)

    # Ids to text

    def decode(self, token_ids: Any, skip_special_tokens: bool = True, **unused: Any) -> Any:
        """Text of generated ids (a list for a batch): BPE undone, words joined; a tab stands for each `<sep>`."""
        token_ids = token_ids.tolist() if hasattr(token_ids, "tolist") else token_ids
        if len(token_ids) and not isinstance(token_ids[0], int):
            return [self.decode(row, skip_special_tokens) for row in token_ids]
        tokens = [self._convert_id_to_token(index) for index in token_ids]
        return self.convert_tokens_to_string(tokens) if skip_special_tokens else " ".join(tokens)

    def batch_decode(self, sequences: Any, skip_special_tokens: bool = True, **unused: Any) -> list[str]:
        return [self.decode(row, skip_special_tokens) for row in sequences]

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        segments: list[list[str]] = [[]]
        for token in tokens:
            if token == SEPARATOR:
                segments.append([])
            elif token == SPECIAL[UNKNOWN] or token not in CONTROL_TOKENS:
                segments[-1].append(token)
        language = self.text_settings["target_language"]
        join = word_tokenizer(self.text_settings["target_tokenizer"], language).detokenize
        texts = [join(restore_control_tokens(self.bpe_decode(segment))) for segment in segments]
        decoded = "\t".join(" ".join(text.split()) for text in texts)
        return SPACE_AFTER_SENTENCE.sub("", decoded) if language in WITHOUT_SPACES else decoded

    # What transformers asks of a tokenizer

    @property
    def vocab_size(self) -> int:
        return len(self.target)

    def get_vocab(self) -> dict[str, int]:
        return dict(self.target.numbers)

    def _convert_token_to_id(self, token: str) -> int:
        return self.target.numbers[token]

    def _convert_id_to_token(self, index: int) -> str:
        return [*SPECIAL, *(symbol for symbol, _ in self.target.counts)][index]

    def _tokenize(self, text: str, **unused: Any) -> list[str]:
        return self.bpe_encode(text)

    def save_vocabulary(self, save_directory: str, filename_prefix: str | None = None) -> tuple[str, ...]:
        prefix = f"{filename_prefix}-" if filename_prefix else ""
        copies = [(path, Path(save_directory, prefix + path.name)) for path in self.files]
        return tuple(str(shutil.copyfile(path, copy)) for path, copy in copies if path.resolve() != copy.resolve())


def load_dictionary(path: str, has_mask: bool) -> Dictionary:
    counts = Dictionary.load(path).counts
    return Dictionary([*counts, ("<mask>", 1)] if has_mask else counts)


def is_marker(tokens: list[str]) -> list[bool]:
    return [token == MARKER for token in tokens]


def learned_bpe(codes_file: str) -> tuple[Encode, Decode]:
    """Merges of words in fastBPE's format; a piece that does not end its word is marked `@@`."""
    lines = Path(codes_file).read_text(encoding="utf-8").removesuffix("\n").split("\n")
    merges = [tuple(line.split(" ")[:2]) for line in lines if line]
    symbols = dict.fromkeys(["<unk>", *(symbol for a, b in merges for symbol in (a, b, a + b))])
    model = models.BPE(
        vocab={symbol: index for index, symbol in enumerate(symbols)},
        merges=merges,
        unk_token="<unk>",
        end_of_word_suffix="</w>",
        fuse_unk=False,
    )
    tokenizer = Tokenizer(model)

    @lru_cache(200_000)
    def pieces(word: str) -> list[str]:
        cut = [word[begin:end] for begin, end in tokenizer.encode([word], is_pretokenized=True).offsets]
        last = cut[-1]  # the text's own "@@" at the end of a word is no continuation mark
        ending = [last[:-1] + "@@", last[-1]] if last.endswith("@@") else [last]
        return [*(piece + "@@" for piece in cut[:-1]), *ending]

    def decode(tokens: list[str]) -> str:
        return "".join(t.removesuffix("@@") if t.endswith("@@") else f"{t} " for t in tokens).rstrip(" ")

    return lambda text: [piece for word in text.split() for piece in pieces(word)], decode


def gpt2_bpe(encoder_file: str, merges_file: str) -> tuple[Encode, Decode]:
    """GPT-2's BPE of bytes; a token is its number there."""
    lines = Path(merges_file).read_text(encoding="utf-8").split("\n")[1:]
    vocabulary = json.loads(Path(encoder_file).read_text(encoding="utf-8"))
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[tuple(line.split(" ")) for line in lines if line]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()

    def decode(tokens: list[str]) -> str:
        text, run = "", []
        for token in [*tokens, ""]:
            if token.isdecimal():
                run.append(int(token))
                continue
            text, run = text + tokenizer.decode(run, skip_special_tokens=False) + token, []
        return text

    return lambda text: [str(number) for number in tokenizer.encode(text, add_special_tokens=False).ids], decode


def sentencepiece_bpe(model_file: str) -> tuple[Encode, Decode]:
    """The pieces of a sentencepiece model."""
    try:
        from sentencepiece import SentencePieceProcessor
    except ImportError as error:
        raise ValueError("this tokenizer needs the package sentencepiece: pip install sentencepiece") from error
    processor = SentencePieceProcessor(model_file=str(model_file))

    def encode(text: str) -> list[str]:
        pieces = processor.encode(text, out_type=str)
        return list(map(escape_control_tokens, pieces)) if pieces or not text.strip(" ") else [SPECIAL[UNKNOWN]]

    return encode, lambda tokens: "".join(map(restore_control_tokens, tokens)).replace("\u2581", " ").removeprefix(" ")
