"""The hashes of what `hat preprocess` has written; `test_golden_preprocess.py` says which figures they have."""

import json
from hashlib import sha256
from pathlib import Path

MANIFEST = "manifest.json"


def hashes(out: Path) -> dict[str, str]:
    """What `hashes` says of an output folder."""
    rows: dict[str, str] = {}
    for path in sorted(path for path in out.rglob("*") if path.is_file()):
        name = str(path.relative_to(out))
        if path.name == MANIFEST:
            rows |= {f"{name}:{figure}": value for figure, value in figures(path).items()}
        else:
            rows[name] = sha256(path.read_bytes()).hexdigest()
    return rows


def figures(path: Path) -> dict[str, str]:
    """The figures of a manifest that do not depend on the machine."""
    manifest = json.loads(path.read_text(encoding="utf-8"))
    inputs = [(Path(each["path"]).name, each["size"]) for each in manifest["inputs"]]
    rows = {"inputs": sha256(json.dumps(inputs).encode()).hexdigest()}
    for split, report in manifest["splits"].items():
        rows |= {f"{split}.{figure}": json.dumps(value, sort_keys=True) for figure, value in report.items()}
    return rows
