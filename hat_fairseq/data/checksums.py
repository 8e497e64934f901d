"""`Checksums`: the sizes and SHA-256 of the files of a folder, as its manifest has them; and the folder compared."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from hat_fairseq.data.files import check_lfs, files_below, read_json, sha256_of

MANIFEST = "manifest.json"


def checksums_of(folder: Path) -> dict[str, dict[str, Any]]:
    """Returns the keys of a manifest about all files below a folder."""
    paths = {name: folder / name for name in files_below(folder)}
    sizes = {name: path.stat().st_size for name, path in paths.items()}
    return {"sha256": {name: sha256_of(path) for name, path in paths.items()}, "files": sizes}


class Problem(NamedTuple):
    """What is wrong with a file of a folder."""

    name: str  # relative to the folder
    text: str  # follows the path of the file in messages


@dataclass(frozen=True)
class Checksums:
    """The SHA-256 and the sizes in bytes of files, by their names relative to a folder; old manifests have no sizes."""

    hashes: Mapping[str, str]
    sizes: Mapping[str, int]

    @classmethod
    def read(cls, folder: Path, manifest: str = MANIFEST, key: str | None = None) -> Self:
        """Reads the manifest of a folder, which must have the `key`.

        Raises:
            OSError, ValueError, KeyError, TypeError: there is no manifest, or it is damaged or another command's.
        """
        record = read_json(folder / manifest)
        if key is not None and key not in record:
            raise KeyError(key)
        return cls(dict(record["sha256"]), dict(record.get("files", {})))

    def problems(
        self, folder: Path, names: Iterable[str] | None = None, most_hashed: float = math.inf
    ) -> Iterator[Problem]:
        """Yields what is missing in a folder, surplus or changed, in the order of the names.

        Args:
            names: only these files; None for those of the manifest, and all that are there.
            most_hashed: bytes of the largest file of which the hash is compared, too.
        Raises:
            ValueError: a file is a pointer of Git LFS or git-annex.
        """
        if names is None:
            names = sorted({*self.hashes, *files_below(folder)} - {MANIFEST})
        for name in names:
            path, size = folder / name, self.sizes.get(name)
            if name not in self.hashes:
                yield Problem(name, f"is not in {MANIFEST}")
            elif not path.is_file():
                yield Problem(name, "is missing")
            elif size is not None and path.stat().st_size != size:
                check_lfs(path)
                yield Problem(name, f"has {path.stat().st_size} bytes instead of {size}: damaged")
            elif path.stat().st_size <= most_hashed and sha256_of(path) != self.hashes[name]:
                yield Problem(name, f"has changed since {MANIFEST} was written")
