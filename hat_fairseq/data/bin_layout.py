"""The layout of `bin/`: where the binary data and the dictionary of each stream are. Other modules ask here.

documents with targets   SPLIT.source-target.source, SPLIT.source-target.target, SPLIT.role-None.role
rows with labels         input0/SPLIT, label/SPLIT, as fairseq's `sentence_prediction` has them
pre-training             SPLIT
"""

from pathlib import Path

from hat_fairseq.data.kinds import Kind

#: The dictionary of each stream; the first that exists, because a folder is of one kind.
DICTIONARIES = {
    "source": ("dict.source.txt", "input0/dict.txt", "dict.txt"),
    "target": ("dict.target.txt",),
    "role": ("dict.role.txt",),
    "label": ("label/dict.txt",),
}


def streams_of(kind: Kind) -> dict[str, tuple[str, str]]:
    """By stream: the files of a split without `.bin` and `.idx`, in which `{split}` stands for it; the dictionary."""
    source, rows, pretraining = DICTIONARIES["source"]
    if not kind.has_target:
        inputs = (f"{kind.folder}/{{split}}", rows) if kind.folder else ("{split}", pretraining)
        return {"source": inputs, "label": ("label/{split}", DICTIONARIES["label"][0])}
    return {
        "source": ("{split}.source-target.source", source),
        "target": ("{split}.source-target.target", DICTIONARIES["target"][0]),
        "role": ("{split}.role-None.role", DICTIONARIES["role"][0]),
    }


def find_dictionary(folder: Path, stream: str) -> Path | None:
    """Returns the dictionary of a stream in a `bin` folder, or None."""
    return next((path for name in DICTIONARIES[stream] if (path := folder / name).is_file()), None)
