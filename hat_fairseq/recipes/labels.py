"""What `hat recipe run` shows of labels at its end: the scores beside the baselines, and the sentences that decide."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from hat_fairseq.data.files import Fields, json_text
from hat_fairseq.data.formats import opened
from hat_fairseq.model_folder import ModelFolder, is_model_folder
from hat_fairseq.printed import printable

MODEL = "model"  # the key of the system that was trained
DOCUMENTS, SENTENCES = 3, 5  # that are shown
SEGMENT = 512  # tokens that an encoder reads together, the default of hat_units
# How settings begin that do not decide what an encoder computes, or that hat_units does not have.
OF_TRAINING = ("extend_positions", "checkpoint_activations", "pooler_", "init", "sentence_queries", "span_pooling")


def scores_of(path: Path, results: Path) -> dict[str, dict[str, Any]]:
    """Returns accuracy, interval and number of documents of each baseline, and of the model, from a file of scores."""
    record = dict(Fields.read(path).record)
    scores = {}
    for name, values in record.items():
        accuracy = values["figures"]["accuracy"]
        interval = {"low": accuracy["low"], "high": accuracy["high"], "n": values["documents"]}
        scores[MODEL if name == str(results) else name] = {"accuracy": accuracy["mean"], **interval}
    return {name: scores[name] for name in sorted(scores, key=lambda name: name == MODEL)}


def as_json(path: Path, results: Path) -> str:
    """Returns the scores as a JSON object."""
    return json_text(scores_of(path, results), indent=2)


def decisive(results: Path) -> Iterator[str]:
    """Yields lines about the sentences with the highest weights of some documents, if the results have weights."""
    with results.open(encoding="utf-8") as file:
        for _, line in zip(range(DOCUMENTS), file, strict=False):
            prediction = json.loads(line)
            segments = [each for each in prediction.get("segments") or () if "weight" in each]
            if not segments:
                return
            yield printable(f"{prediction['id']}: {prediction['label']}. The sentences with the highest weights:")
            for each in sorted(segments, key=lambda each: -each["weight"])[:SENTENCES]:
                yield printable(f"  {each['weight']:.2f}  {' '.join(each['text'].split())}")


def words_of_ids(root: str) -> list[str]:
    """Returns the flag that numbers documents, if the first one of the training data has no id."""
    for path in sorted(Path(root).glob("train.*")):
        with suppress(ValueError, OSError), opened(path) as file:
            first = next((row for _, row in file.rows()), {})
            return [] if first.get("id") is not None else ["--number-ids"]
    return []  # which hat preprocess refuses with its reasons


def encoder_words(folder: str) -> dict[str, list[str]]:
    """Returns for each step the words of the flags that start from the folder of an encoder.

    ValueError for another folder.
    """
    path = Path(folder)
    if not is_model_folder(path) or (description := ModelFolder.open(path).description) is None:
        raise ValueError(
            f"--encoder {folder} is no folder of hat import --package: run hat import HF_DIR --package {folder}"
        )
    settings = {name: value for name, value in description["settings"].items() if not name.startswith(OF_TRAINING)}
    if description["network"] != "hat_roberta" or not settings.get("no_hierarchy"):
        raise ValueError(f"--encoder {folder} is a {description['network']}, and not an encoder without hierarchy")
    settings |= {"arch": "hat_units", "segment_length": min(SEGMENT, settings["max_positions"])}
    stated = {name: value for name, value in (settings | {"finetune_from_model": folder}).items() if value is not None}
    words = [
        [flag] if value is True else [flag, str(value)]
        for name, value in stated.items()
        if value is not False
        for flag in [f"--{name.replace('_', '-')}"]
    ]
    return {
        "preprocess": ["--bpe=null", "--bpe-dir=null", "--vocabulary", str(path / "bin")],
        "train": [word for each in words for word in each],
    }
