"""`hat doctor --data DIR`: compare the files of `hat preprocess` with its manifest."""

import hashlib
import json
import sys
from pathlib import Path

MANIFEST = "manifest.json"


def check_data(directory: Path) -> int:
    """Prints each file of a directory (that around a `bin`) that is not as its manifest says; 2 if there is one."""
    if not (directory / MANIFEST).is_file() and directory.resolve().name == "bin":
        directory = directory.resolve().parent
    try:
        hashes = dict(json.loads((directory / MANIFEST).read_text(encoding="utf-8"))["sha256"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        what = f"{directory / MANIFEST} cannot be read ({error})"
        raise ValueError(f"{what}; is it a directory of hat preprocess?") from None
    present = {str(path.relative_to(directory)) for path in directory.rglob("*") if not path.is_dir()} - {MANIFEST}
    problems = dict.fromkeys(hashes.keys() - present, "is missing")
    problems |= dict.fromkeys(present - hashes.keys(), "is not in the manifest")
    for name in hashes.keys() & present:
        with open(directory / name, "rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != hashes[name]:
                problems[name] = "differs from the manifest"
    for name, problem in sorted(problems.items()):
        print(f"{directory / name} {problem}", file=sys.stderr)
    advice = "; run hat preprocess again, or remove what is not in the manifest" if problems else ""
    print(f"{directory}: {len(hashes)} files in the manifest, {len(problems)} problems{advice}")
    return 2 if problems else 0
