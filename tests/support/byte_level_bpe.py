"""A byte-level BPE in the files of GPT-2's, learned on the spot."""

import json
from collections import Counter
from itertools import islice
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from hat_fairseq.data.files import sha256_of
from hat_fairseq.data.readers import find_reader


def write_byte_level_bpe(folder: Path) -> int:
    """encoder.json, vocab.bpe and dict.txt learned on meetings, and the hashes that say it is on purpose; its size."""
    folder.mkdir()
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=600, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    meetings = islice(find_reader("ami").read("train", None, Counter()), 3)
    lines = [text for meeting in meetings for text in meeting.elements or ()]
    tokenizer.train_from_iterator(lines, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    (folder / "encoder.json").write_text(json.dumps(model["vocab"]))
    merges = "".join(f"{left} {right}\n" for left, right in model["merges"])
    (folder / "vocab.bpe").write_text("#version: 0.2\n" + merges, encoding="utf-8")
    (folder / "dict.txt").write_text("".join(f"{number} 1\n" for number in range(len(model["vocab"]))))
    names = ("encoder.json", "vocab.bpe", "dict.txt")
    (folder / "SHA256SUMS").write_text("".join(f"{sha256_of(folder / name)}  {name}\n" for name in names))
    return len(model["vocab"])
