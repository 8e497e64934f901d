"""The repository as a whole: its files agree with each other and say nothing about the machine they were written on."""

import re
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest
import render
from commands import run_command
from markdown.extensions.toc import slugify

import hat_fairseq
from hat_fairseq import doctor

ROOT = Path(__file__).resolve().parents[1]
HOUSE = ["README.md", "CHANGELOG.md", "LICENSE", "Makefile", "setup.py", "pyproject.toml", "constraints.txt"]
HOUSE += ["CITATION.cff", ".pre-commit-config.yaml", ".gitignore"]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]

# In pieces, so that this file does not contain what it looks for.
PRIVATE = [
    "/" + "work/",
    "/" + "root/",
    "/" + "home/",
    "../" + "shared",
    "file" + ":///",
    "pypi" + ".org",
    "index" + "-url",
]
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b|\bissues? #?\d")
FOLDERS = "hat_fairseq preprocess configs train_scripts generate_scripts examples benchmarks"
FOLDERS += " studies docs tests .ci .github"


def text_files() -> list[Path]:
    """The files at the top and in the folders of the house, without what tools and runs leave there."""
    top = [path for path in ROOT.iterdir() if path.suffix in {".md", ".toml", ".py"} or path.name in HOUSE]
    inside = [path for folder in FOLDERS.split() for path in (ROOT / folder).rglob("*")]
    paths = (path for path in top + inside if path.is_file() and not {"__pycache__", "demo_model"} & {*path.parts})
    return sorted(path for path in paths if b"\0" not in path.read_bytes())  # no text has it


FILES = text_files()
MODULES = [path for path in FILES if path.suffix == ".py" and path.relative_to(ROOT).parts[0] != "tests"]


def test_test_modules_have_names_of_their_own() -> None:
    """The folders of tests are no packages: pytest refuses two modules of one name."""
    names = [path.name for path in FILES if path.name.startswith("test_")]
    assert len(names) == len(set(names))


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines), "only exact versions, nothing local"
    return {normalised(name): version for name, version in (line.split("==") for line in lines)}


def normalised(name: str) -> str:
    """A distribution's name as pip compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_nothing_private_and_nothing_unfinished() -> None:
    lines = [
        f"{relative(path)}:{number}: {line.strip()[:150]}"
        for path in FILES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if any(word in line for word in PRIVATE) or UNFINISHED.search(line)
    ]
    assert lines == []
    assert len(FILES) > 50


def test_modules_that_docstrings_name_exist() -> None:
    names = {path.name for path in FILES} | {"tydi_eval.py", "triviaqa_evaluation.py"}  # the authors' scorers
    named = [
        (relative(path), name)
        for path in MODULES
        for name in re.findall(r"`(?:[a-z]\w*/)*(\w+\.py)`", path.read_text(encoding="utf-8"))
    ]
    assert len(named) > 20
    assert [place for place in named if place[1] not in names] == []


def test_scripts_that_tests_import_have_different_names() -> None:
    folders = PYPROJECT["tool"]["pytest"]["ini_options"]["pythonpath"]
    stems = [path.stem for folder in folders if folder != "." for path in (ROOT / folder).glob("*.py")]
    assert len(stems) > 50
    assert [stem for stem, times in Counter(stems).items() if times > 1] == []


def test_version_is_the_same_everywhere() -> None:
    top = re.search(
        r"^## (\d+\.\d+\.\d+) \(\d{4}-\d\d-\d\d\)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    # the latest release: an "(unreleased)" heading is passed over
    assert top is not None
    assert top[1] == PROJECT["version"] == hat_fairseq.__version__


def test_links_between_pages_lead_somewhere() -> None:
    pages = [path for path in FILES if path.suffix == ".md"]
    broken = []
    for page in pages:
        for target in re.findall(r"\]\(([^)\s#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in target and not (page.parent / target).exists():
                broken.append(f"{relative(page)} -> {target}")
    assert pages
    assert broken == []


def test_messages_name_pages_and_headings_that_exist() -> None:
    """Such as `docs/data.md#parallel-text` in a string of the package."""
    named = {
        match
        for path in (ROOT / "hat_fairseq").rglob("*.py")
        for match in re.findall(r"\b(docs/\w+\.md)(?:#([a-z0-9-]+))?", path.read_text(encoding="utf-8"))
    }
    assert len(named) > 8
    assert [each for each in named if each[1] and each[1] not in anchors(each[0])] == []


def anchors(page: str) -> set[str]:
    headings = re.findall("^#+ (.+)$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    return {slugify(re.sub("[`*]", "", heading), "-") for heading in headings}


def test_make_bench_runs_what_the_page_shows() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    timed = re.search(r"^TIMED := (.*)", makefile, re.MULTILINE)
    assert timed is not None
    assert {*timed[1].split(), "gpu"} == {*render.TIMED, "floor", "preprocessing"}
    assert [name for name in timed[1].split() if not (ROOT / f"benchmarks/{name}.py").is_file()] == []


def groups() -> dict[str, list[str]]:
    """The requirements of developers; groups inside of others are listed themselves."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    return {name: [each for each in lines if isinstance(each, str)] for name, lines in listed.items()}


@pytest.mark.parametrize(
    ("name", "specifier"),
    [(name, specifier) for name, specifier, _ in doctor.requirements()]
    + sorted({re.match(r"([\w.-]+)(.*)", line).groups() for lines in groups().values() for line in lines}),
)
def test_constraints_pin_what_the_project_requires(name: str, specifier: str) -> None:
    assert doctor.satisfies(pins()[normalised(name)], specifier)


def test_fairseq_is_the_same_everywhere() -> None:
    """The extra `train` and the group `fairseq`, which is for builds without torchaudio; the doctor builds it, too."""
    pinned = pins()
    assert [doctor.FAIRSEQ, *groups()["fairseq"]] == PROJECT["optional-dependencies"]["train"]
    assert doctor.FAIRSEQ.split("==") == ["fairseq-fixed", pinned["fairseq-fixed"]]
    assert {"pip", "setuptools", "wheel"} <= pinned.keys()
    assert "torchaudio" not in pinned


def test_set_up_builds_fairseq_as_the_doctor_says() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("$(FAIRSEQ)", "fairseq-fixed")
    assert doctor.FAIRSEQ_FLAGS in " ".join(makefile.replace("\\\n", " ").split())


@pytest.mark.slow
def test_the_page_of_faults_is_what_the_marked_tests_say() -> None:
    run_command(sys.executable, ROOT / "tests/support/reliability.py", "--check")


EXTRA = re.compile(r"(?:hat_fairseq(?:-[\w.-]+\.whl)?|\.|wheel with `)\[([a-z-]+(?:,[a-z-]+)*)\]")


def test_pages_and_messages_name_extras_that_exist() -> None:
    known, pages = PROJECT["optional-dependencies"].keys(), [ROOT / "CHANGELOG.md", ROOT / "docs/upgrading.md"]
    named = [
        (relative(path), extra)
        for path in FILES
        if path not in pages
        for names in EXTRA.findall(path.read_text(encoding="utf-8").replace('\\"', '"'))
        for extra in names.split(",")
    ]
    assert len(named) > 20
    assert [each for each in named if each[1] not in known and each[0] != "pyproject.toml"] == []
    assert len(known) == 6
