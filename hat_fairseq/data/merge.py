"""Join the shards of `hat preprocess --shard K --of N` into the files of one process, byte for byte.

A shard is a part of the records, preprocessed with a fixed dictionary and without the binary data. Merging does what
needs all records: their order, packed rows, duplicates, the classes of labels, the binary data and the manifest.
"""

import argparse
import json
import os
import shutil
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from hat_fairseq.data import manifest
from hat_fairseq.data.build import Build
from hat_fairseq.data.encode_split import write_packed
from hat_fairseq.data.files import sha256_of
from hat_fairseq.data.options import Options
from hat_fairseq.data.outputs import atomic_directory, files_below
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.readers import Reader
from hat_fairseq.data.record import Gold, Record
from hat_fairseq.data.records_json import read_records
from hat_fairseq.data.stages import Share, check_gold, read_split, records_path

FILE_NAME = "shard.json"  # of a finished shard
_READER = ("name", "splits", "release", "paper", "kind")


class Shard(NamedTuple):
    """A finished shard: its settings, the figures of each split, the SHA-256 of its files."""

    directory: Path
    number: int
    of: int
    settings: dict[str, Any]
    splits: dict[str, Any]
    files: dict[str, str]

    def of_split(self, split: str | None) -> dict[str, str]:
        """The files of a split; for None those of none: vocabulary, pipeline, roles."""
        of = {name: stem if (stem := Path(name).name.partition(".")[0]) in self.splits else None for name in self.files}
        return {name: digest for name, digest in self.files.items() if of[name] == split}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shards", nargs="+", type=Path, metavar="SHARD", help="the directories of all shards")
    parser.add_argument("--out", type=Path, required=True, help="directory to create")
    parser.add_argument("--overwrite", action="store_true", help="replace an earlier result")


def main(args: argparse.Namespace) -> int:
    with atomic_directory(args.out, manifest.FILE_NAME, args.overwrite, "reader") as directory:
        shards = open_shards(args.shards)
        settings = shards[0].settings
        reader = Reader(**{name: settings[name] for name in _READER}, read=partial(_stand_ins, shards))
        build = Build(reader, Options(**settings["options"]), directory)
        merge(shards, build)
        commands = build.binarize(shown_as=args.out)
        record = manifest.write_manifest(directory, reader, build.options, build.reports, settings["inputs"])
    print(*commands, manifest.table(record), f"wrote {args.out}", sep="\n")
    return 0


def write_shard(build: Build, share: Share, inputs: list[dict[str, Any]]) -> None:
    """Write `shard.json`, and `SPLIT.records` with a line for each record: id, digest, number of its lines or -."""
    splits = {}
    for split, digests in share.digests.items():
        lines = (f"{name}\t{digest}\t{share.lines[split].get(name, '-')}\n" for name, digest in digests)
        (build.text / f"{split}.records").write_bytes("".join(lines).encode())
        splits[split] = {"figures": {**vars(build.reports[split]), "kind": None}, "dropped": share.dropped[split]}
    settings = {name: getattr(build.reader, name) for name in _READER} | {"options": asdict(build.options)}
    settings |= {"versions": manifest.versions(), "inputs": inputs}
    files = {name: sha256_of(build.directory / name) for name in files_below(build.directory)}
    record = {"number": share.number, "of": share.of, "settings": settings, "splits": splits, "files": files}
    (build.directory / FILE_NAME).write_text(json.dumps(record, ensure_ascii=False) + "\n", encoding="utf-8")


def open_shards(directories: Iterable[Path]) -> list[Shard]:
    """All shards in order; ValueError for one that is missing, given twice, unfinished, changed or of another run."""
    shards: dict[int, Shard] = {}
    for directory in directories:
        shard = _open(directory)
        if (other := shards.setdefault(shard.number, shard)) is not shard:
            raise ValueError(f"{other.directory} and {directory} are both shard {shard.number}; give each shard once")
        first = next(iter(shards.values()))
        ours, others = _decisive(shard), _decisive(first)
        if differs := [name for name in {**others, **ours} if ours.get(name) != others.get(name)]:
            different = f"{differs[0]} is {others.get(differs[0])!r:.80} and {ours.get(differs[0])!r:.80}"
            raise ValueError(f"{first.directory} and {directory} do not belong together: {different}")
    if missing := [str(number) for number in range(1, first.of + 1) if number not in shards]:
        raise ValueError(f"of {first.of} shards, shard {', '.join(missing)} is missing; make it and give it, too")
    return [shards[number] for number in sorted(shards)]


def _open(directory: Path) -> Shard:
    try:
        shard = Shard(directory, **json.loads((directory / FILE_NAME).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(f"{directory} has no {FILE_NAME}: it is no finished shard of hat preprocess") from error
    for name, digest in shard.files.items():
        if not (directory / name).is_file() or sha256_of(directory / name) != digest:
            raise ValueError(f"{directory / name} is missing or was changed; make shard {shard.number} again")
    return shard


def _decisive(shard: Shard) -> dict[str, Any]:
    """The settings that all shards share. Paths may differ: another machine can see the same files elsewhere."""
    options, inputs = shard.settings["options"], shard.settings["inputs"]
    found = {"--of": shard.of, **shard.settings["versions"], **{name: shard.settings[name] for name in _READER}}
    found |= {f"--{name.replace('_', '-')}": value for name, value in options.items() if name != "vocabulary"}
    found |= {f"input {i} ({Path(row['path']).name})": {**row, "path": ""} for i, row in enumerate(inputs)}
    found |= {f"--vocabulary ({name})": digest for name, digest in shard.of_split(None).items()}
    return found | {f"what the reader dropped of {split}": part["dropped"] for split, part in shard.splits.items()}


def merge(shards: list[Shard], build: Build) -> None:
    """Write `text/` and what is in `bin/` besides the binary data; fill the reports of the build."""
    for name in shards[0].of_split(None):
        (build.directory / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(shards[0].directory / name, build.directory / name)
    build.text.mkdir(exist_ok=True)
    pipeline, earlier = TextPipeline.load(build.directory / "bin"), set[object]()
    for split in build.reader.splits:
        report = build.reports[split] = manifest.SplitReport(build.kind)
        report.treatments.update(shards[0].splits[split]["dropped"])
        deque(read_split(build.reader, split, None, build.options, report.treatments, earlier), maxlen=0)  # its checks
        for shard in shards:
            report.add(shard.splits[split]["figures"])
        kept = [(place, int(lines)) for place, _, _, lines in _records(shards, split) if lines != "-"]
        for name in sorted({name for shard in shards for name in shard.of_split(split)} - {f"text/{split}.records"}):
            with ExitStack() as stack:
                paths = [shard.directory / name if name in shard.files else os.devnull for shard in shards]
                files = [stack.enter_context(open(path, encoding="utf-8", newline="\n")) for path in paths]
                if build.options.pack and name.endswith(".source"):
                    units = ([line.split() for line in islice(files[place], number)] for place, number in kept)
                    write_packed(pipeline, units, build.directory, split, report)
                else:
                    out = stack.enter_context(open(build.directory / name, "w", encoding="utf-8", newline="\n"))
                    for place, number in kept:
                        out.writelines(islice(files[place], 1 if name.endswith(".jsonl") else number))
        gold = build.gold[split] = Gold()
        for record in read_records(records_path(build.text, split), build.kind, split):
            gold.add(record, build.kind.gold)
        check_gold(split, gold, build.kind)
    build.finish(pipeline)


def _stand_ins(shards: list[Shard], split: str, *_: object) -> Iterator[Record]:
    """A record for each one, with its id and the digest of its source."""
    return (Record(name, (digest,)) for _, name, digest, _ in _records(shards, split))


def _records(shards: list[Shard], split: str) -> Iterator[tuple[int, str, str, str]]:
    """The records of a split in their order: place of the shard, id, digest, number of lines."""
    tables = [(shard.directory / f"text/{split}.records").read_text(encoding="utf-8").split("\n") for shard in shards]
    for lines in zip_longest(*tables):
        for place, line in enumerate(filter(None, lines)):
            name, digest, number = line.split("\t")
            yield place, name, digest, number
