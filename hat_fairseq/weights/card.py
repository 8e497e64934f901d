"""The model card of a folder, README.md, with the front matter that the Hugging Face Hub reads."""

import re
from pathlib import Path
from typing import Any

import yaml

import hat_fairseq

from ..data import kinds
from ..data.files import json_text, read_json
from ..data.language import base_language
from ..data.options import Settings
from ..data.pipeline import TextPipeline
from ..model_folder import CARD
from ..networks.encoder import UNLIMITED
from .read_card import TABLE, Card
from .trained import Trained

SHOWN = ("max_source_tokens", "long_source", "source_language", "max_target_tokens", "target_language")
KEPT = ("trained on", "trained with")  # rows of an earlier card that this command cannot know
FLAGS = {  # of fairseq-train in the model card, with the place of each in the settings of a training
    "criterion": ("criterion", "_name"),
    "optimizer": ("optimizer", "_name"),
    "lr-scheduler": ("lr_scheduler", "_name"),
    "lr": ("optimization", "lr"),
    "warmup-updates": ("lr_scheduler", "warmup_updates"),
    "batch-size": ("dataset", "batch_size"),
    "max-tokens": ("dataset", "max_tokens"),
    "update-freq": ("optimization", "update_freq"),
    "distributed-world-size": ("distributed_training", "distributed_world_size"),
    "seed": ("common", "seed"),
}

HUB_TASKS = {  # the pipeline_tag of the Hugging Face Hub, by the kind of data
    kinds.ClassificationKind: "text-classification",
    kinds.ChoiceKind: "multiple-choice",
    kinds.CandidateKind: "multiple-choice",
    kinds.WordKind: "token-classification",
    kinds.QuestionKind: "question-answering",
    kinds.PretrainingKind: "fill-mask",
}


def card(name: str, trained: Trained, half: bool, chosen: dict[str, Any], scores: dict[str, Any] | None) -> str:
    """Returns the text of README.md.

    What the card of a folder says that this command cannot know stays: other fields, the training, and text below.

    Args:
        half: the weights are stored in fp16.
        chosen: fields of the front matter, which win.
        scores: what `hat score --out` wrote.
    """
    model, cfg, pipeline = trained.model, trained.cfg, TextPipeline.load(trained.data)
    earlier = Card.read(trained.folder.path / CARD) if trained.folder else Card()
    longest = "longest input and output" if pipeline.kind.has_target else "longest input"
    names = SHOWN if pipeline.kind.has_target else SHOWN[: 3 if pipeline.kind.is_text else 2]
    facts = {
        "architecture, task": f"{cfg['model']._name}, {cfg['task']._name}",
        "parameters": f"{sum(each.numel() for each in model.parameters()):,} in {'fp16' if half else 'fp32'}",
        "words beside the network": words_of(model),
        "updates": f"{trained.updates:,}",
        longest: "any" if trained.longest == UNLIMITED else trained.longest,
        **{setting.replace("_", " "): getattr(pipeline.settings, setting) for setting in names},
        **({} if languages_of(pipeline) else dict.fromkeys(("source language", "target language"))),
        "trained on": trained_on(trained.data.resolve().with_name("manifest.json")),
        "trained with": trained_with(cfg),
        **{what: value for what, value in earlier.facts.items() if what in KEPT},
        "written by": f"hat_fairseq {hat_fairseq.__version__}",
    }
    rows = "".join(f"| {what} | {value} |\n" for what, value in facts.items() if value is not None)
    use = f'`hat_fairseq.load("{name}")` in Python, MODEL of all commands, or, in transformers, after '
    use += "`import hat_fairseq.hf`, `AutoTokenizer` and `AutoModel...`."
    front = front_matter(pipeline, [trained.network, cfg["task"]._name], earlier.fields | chosen)
    parts = [f"{front}# {name}\n\n{use}\n\n{TABLE}{rows}", earlier.text, "" if scores is None else scores_of(scores)]
    return "\n".join(filter(None, parts))


def words_of(model: Any) -> str | None:
    """Says how many terms of the training documents a head for labels knows; None for another model."""
    counts = [int(module.fitted) for module in model.modules() if hasattr(module, "fitted")]
    return f"{sum(counts):,} terms of its training documents" if any(counts) else None


def scores_of(record: dict[str, Any]) -> str:
    """Returns a table of what `hat score --out` wrote: a row for each score, a column for each file.

    Of the paths of this machine the names are shown, from where they differ. What has no scores is shown as it is.
    """
    systems = {name: each for name, each in record.get("systems", record).items() if isinstance(each, dict)}
    files = dict(zip(names_of(list(systems)), systems.values(), strict=True))
    shown = [(name, each.get("scores", each.get("figures")), each.get("intervals")) for name, each in files.items()]
    figures = {name: each | (intervals or {}) for name, each, intervals in shown if isinstance(each, dict)}
    if not figures:
        text = re.sub(r'(?<=")/[^"]*/', "", json_text(record, indent=1))
        return f"Scores:\n\n```\n{text}\n```\n"
    names = dict.fromkeys(name for each in figures.values() for name in each)
    rows = [["score", *figures], ["---"] * (1 + len(figures))]
    rows += [[name, *(cell(each.get(name, "")) for each in figures.values())] for name in names]
    signatures = dict.fromkeys([each.get("signature") for each in files.values()])
    signatures |= dict.fromkeys(record.get("signatures", {}).values())
    lines = [f"\n`{each}`\n" for each in signatures if each]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows) + "".join(lines)


def names_of(paths: list[str]) -> list[str]:
    """Returns the names of files, with as many folders before them as tell them apart."""
    for depth in range(1, 2 + max((len(Path(path).parts) for path in paths), default=0)):
        names = ["/".join(Path(path).parts[-depth:]) for path in paths]
        if len({*names}) == len(names):
            break
    return names


def cell(score: Any) -> str:
    """Writes a number with two digits, and a score with its interval if there is one."""
    if not isinstance(score, dict):
        return f"{score:.2f}" if isinstance(score, float) else str(score)
    if "low" in score:
        limits = "" if score["low"] is None else f" [{score['low']:.2f}, {score['high']:.2f}]"
        return f"{score['mean']:.2f}{limits}"
    spread = "" if score.get("half_width") is None else f" ± {score['half_width']:.2f}"
    return f"{score['score']:.2f}{spread}" if "score" in score else str(score)


def trained_on(path: Path) -> str | None:
    """Returns the reader and the numbers of documents that a manifest of `hat preprocess` names; None without one."""
    manifest = read_json(path) if path.is_file() else {}
    if "splits" not in manifest:  # that of a folder
        return None
    counts = (f"{name} {split['documents']:,}" for name, split in manifest["splits"].items())
    return f"{Path(manifest['reader']).name}; documents: {', '.join(counts)}"


def trained_with(cfg: Any) -> str | None:
    """Returns the flags of a training in its settings; None if it records none."""
    flags = []
    for flag, (section, name) in FLAGS.items():
        value = getattr(cfg.get(section), name, None)
        if value is not None:
            text = value if isinstance(value, str | int | float) else ",".join(map(str, value))
            flags.append(f"--{flag} {text}")
    return f"`{' '.join(flags)}`" if flags else None


def languages_of(pipeline: TextPipeline) -> list[str]:
    """Returns the language of a model, or of its source and target; none for the default alone, which nobody states."""
    settings, kind = pipeline.settings, pipeline.kind
    languages = [settings.source_language] if kind.is_text else []
    if kind.has_target and settings.target_language != settings.source_language:
        languages.append(settings.target_language)
    return [] if languages == [Settings.source_language] else languages


def front_matter(pipeline: TextPipeline, tags: list[str], chosen: dict[str, Any]) -> str:
    """Returns the head of README.md that the Hugging Face Hub reads; fields that are unknown are left out."""
    kind, languages = pipeline.kind, languages_of(pipeline)
    hub_task = next((task for each, task in HUB_TASKS.items() if isinstance(kind, each)), None)
    fields = {
        "language": languages,
        "library_name": "hat_fairseq",
        "pipeline_tag": "translation" if len({*map(base_language, languages)}) > 1 else hub_task,
        "tags": tags,
        **chosen,
    }
    known = {name: value for name, value in fields.items() if value}
    return f"---\n{yaml.safe_dump(known, sort_keys=False, allow_unicode=True)}---\n\n"
