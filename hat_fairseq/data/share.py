"""A shard of a data set, for `hat preprocess --shard` on several machines."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from pathlib import Path

from hat_fairseq.data.options import Options
from hat_fairseq.data.readers import Reader
from hat_fairseq.data.record import Record


@dataclass
class Share:
    """A shard: record i of a split, from 0, belongs to shard `i % of + 1`.

    So any reader can be divided, nothing is counted first, and shards differ by one record at most. The price: each
    shard reads the whole input, although it processes its own records only; and merging interleaves lines.

    Of each split: what the reader dropped; ids, and digests of the sources; lines of each record that is not dropped.
    """

    number: int
    of: int
    dropped: dict[str, Counter[str]] = field(default_factory=dict)
    digests: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    lines: dict[str, dict[str, int]] = field(default_factory=dict)

    def read(self, reader: Reader, split: str, root: Path | None, options: Options) -> Iterator[Record]:
        """The records of this shard."""
        self.digests[split], self.dropped[split], self.lines[split] = [], Counter(), {}
        records = islice(reader.read(split, root, self.dropped[split]), options.limit)
        for record in islice(records, self.number - 1, None, self.of):
            self.digests[split].append((record.id, sha256(repr(record.source).encode()).hexdigest()[:16]))
            yield record
