"""Small BERTs in the layout of folders for sentence-transformers, written by hand in its old and new form."""

import json
from pathlib import Path
from typing import Any

import transformers
from small_peers import ENCODER_SIZES, small_peer
from tokenizers import Tokenizer, processors
from tokenizers_on_the_spot import write_tokenizer

POSITIONS = 60
OLD = "sentence_transformers.models"
NEW = {
    "Transformer": "sentence_transformers.base.modules.transformer",
    "Pooling": "sentence_transformers.sentence_transformer.modules.pooling",
    "Normalize": "sentence_transformers.base.modules.normalize",
}


def write_text_encoder(
    folder: Path,
    tokenizer: str = "uncased WordPiece",
    modules: tuple[str, ...] = ("Transformer", "Pooling", "Normalize"),
    pooling: dict[str, Any] | None = None,
    lengths: dict[str, Any] | None = None,
    settings: dict[str, Any] | None = None,
    old: bool = True,
) -> Path:
    """A BERT with random weights for `POSITIONS` positions; `pooling`, `lengths`, `settings`: of its JSON files."""
    write_tokenizer(folder, tokenizer)
    ends = ("[CLS]", "[SEP]") if "WordPiece" in tokenizer else ("<s>", "</s>")
    library = Tokenizer.from_file(str(folder / "tokenizer.json"))
    pairs = [(name, library.token_to_id(name)) for name in ends]
    single = f"{ends[0]} $A {ends[1]}"
    library.post_processor = processors.TemplateProcessing(single=single, special_tokens=pairs)
    library.no_truncation()
    library.no_padding()
    library.save(str(folder / "tokenizer.json"))
    sizes = ENCODER_SIZES | {"vocab_size": library.get_vocab_size(), "max_position_embeddings": POSITIONS}
    sizes["pad_token_id"] = library.token_to_id("[PAD]" if "WordPiece" in tokenizer else "<pad>")
    small_peer(transformers.BertModel, transformers.BertConfig(**sizes)).save_pretrained(folder)
    places = {"Transformer": "", "Pooling": "1_Pooling"}
    rows = [
        {
            "idx": number,
            "name": str(number),
            "path": places.get(name, f"{number}_{name}"),
            "type": f"{OLD if old else NEW.get(name, OLD)}.{name}",
        }
        for number, name in enumerate(modules)
    ]
    write_json(folder / "modules.json", rows)
    (folder / "1_Pooling").mkdir()
    for number, name in enumerate(modules):
        (folder / places.get(name, f"{number}_{name}")).mkdir(exist_ok=True)
    default = {"word_embedding_dimension": 24, "pooling_mode_mean_tokens": True} if old else {"embedding_dimension": 24}
    write_json(folder / "1_Pooling/config.json", default if pooling is None else {**default, **pooling})
    write_json(folder / "sentence_bert_config.json", lengths or {"max_seq_length": 32, "do_lower_case": False})
    if settings is not None:
        write_json(folder / "config_sentence_transformers.json", settings)
    return folder


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")
