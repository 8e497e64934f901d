"""Small complete releases, each what a reader takes as `--root`: files among the fixtures, or written here."""

import shutil
import tarfile
from pathlib import Path

from commands import REPOSITORY

SAMPLES = REPOSITORY / "tests/samples"
RELEASES = REPOSITORY / "tests/fixtures/releases"
GOLDEN = REPOSITORY / "tests/golden/preprocess"
OTHER_FOLDERS = {
    "arxiv": RELEASES / "cohan",
    "pubmed": RELEASES / "cohan",
    "lra_text": RELEASES / "imdb",
    "roberta_pretraining": RELEASES / "pretraining",
    "ernie_sparse_pretraining": RELEASES / "pretraining",
}
OTHER_FOLDERS |= {name: GOLDEN / name / "raw" for name in ("lra_listops", "lra_pathfinder", "lra_retrieval")}
CATEGORIES = ("cs.AI", "cs.CE", "cs.CV", "cs.DS", "cs.IT", "cs.NE", "cs.PL", "cs.SY", "math.AC", "math.GR", "math.ST")


def write_release(name: str, root: Path) -> Path:
    """Makes the folder `root`, or adds to it; returns it."""
    root.mkdir(parents=True, exist_ok=True)
    if name in WRITERS:
        WRITERS[name](root)
    else:
        shutil.copytree(OTHER_FOLDERS.get(name, RELEASES / name), root, dirs_exist_ok=True)
    return root


def write_arxiv_categories(root: Path) -> None:
    """44 papers, the first ones of two categories the same."""
    for place, label in enumerate(CATEGORIES):
        (root / label).mkdir()
        for paper in range(4):
            number = 0 if paper == 0 and place < 2 else 4 * place + paper
            text = f"{label} {number}\nWe show {number} facts about {label}."
            (root / label / f"15{number:02}.0{number:04}v{1 + place}.txt").write_text(text, encoding="utf-8")


def write_libreoffice_help_en_de(root: Path) -> None:
    """The packages' folder with 25 pages."""
    with tarfile.open(SAMPLES / "libreoffice_pages.tar.gz") as archive:
        safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # Python 3.11.4 and later
        archive.extractall(root, **safely)  # type: ignore[arg-type]


def write_tydi_qa(root: Path) -> None:
    """Eleven questions in ten languages and English, with whole articles and three annotations each, in both parts."""
    for part in ("train", "dev"):
        shutil.copy(SAMPLES / "tydi_qa.jsonl.gz", root / f"tydiqa-v1.0-{part}.jsonl.gz")


WRITERS = {
    "arxiv_categories": write_arxiv_categories,
    "libreoffice_help_en_de": write_libreoffice_help_en_de,
    "tydi_qa": write_tydi_qa,
}
