"""The repository as a whole: its files agree with each other and say nothing about the machine they were written on."""

import re
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest
import render
from commands import environment, run_command
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
    assert lines == [] and len(FILES) > 50


def test_modules_that_docstrings_name_exist() -> None:
    names = {path.name for path in FILES} | {"tydi_eval.py", "triviaqa_evaluation.py"}  # the authors' scorers
    named = [
        (relative(path), name)
        for path in MODULES
        for name in re.findall(r"`(?:[a-z]\w*/)*(\w+\.py)`", path.read_text(encoding="utf-8"))
    ]
    assert len(named) > 20 and [place for place in named if place[1] not in names] == []


def test_scripts_that_tests_import_have_different_names() -> None:
    folders = PYPROJECT["tool"]["pytest"]["ini_options"]["pythonpath"]
    stems = [path.stem for folder in folders if folder != "." for path in (ROOT / folder).glob("*.py")]
    assert len(stems) > 50 and [stem for stem, times in Counter(stems).items() if times > 1] == []


def test_version_is_the_same_everywhere() -> None:
    top = re.search(
        r"^## (\d+\.\d+\.\d+) \(\d{4}-\d\d-\d\d\)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    # the latest release: an "(unreleased)" heading is passed over
    assert top is not None and top[1] == PROJECT["version"] == hat_fairseq.__version__


def test_links_between_pages_lead_somewhere() -> None:
    pages = [path for path in FILES if path.suffix == ".md"]
    broken = []
    for page in pages:
        for target in re.findall(r"\]\(([^)\s#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in target and not (page.parent / target).exists():
                broken.append(f"{relative(page)} -> {target}")
    assert pages and broken == []


def test_messages_name_pages_and_headings_that_exist() -> None:
    """Such as `docs/data.md#parallel-text` in a string of the package."""
    named = {
        match
        for path in (ROOT / "hat_fairseq").rglob("*.py")
        for match in re.findall(r"\b(docs/\w+\.md)(?:#([a-z0-9-]+))?", path.read_text(encoding="utf-8"))
    }
    assert len(named) > 8 and [each for each in named if each[1] and each[1] not in anchors(each[0])] == []


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
    assert {"pip", "setuptools", "wheel"} <= pinned.keys() and "torchaudio" not in pinned


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
    assert len(named) > 20 and [each for each in named if each[1] not in known and each[0] != "pyproject.toml"] == []
    assert len(known) == 6


TRIES = """
import pathlib, pytest
@pytest.mark.parametrize("number", range({flaky}))
def test_that_passes_the_second_time(number):
    mark = pathlib.Path(f"{{number}}.tried")
    was_there = mark.exists()
    mark.touch()
    assert was_there
@pytest.mark.parametrize("number", range({broken}))
def test_that_never_passes(number): assert False
def test_that_passes(): pass
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flaky", "broken", "passes"), [(1, 0, True), (2, 0, True), (1, 1, False), (3, 0, False)], ids=str
)
def test_few_tests_get_a_second_try(flaky: int, broken: int, passes: bool, tmp_path: Path) -> None:
    (tmp_path / "test_tries.py").write_text(TRIES.format(flaky=flaky, broken=broken), encoding="utf-8")
    options = {"check": False, "cwd": tmp_path, "env": environment(PYTHON=sys.executable)}
    run_command(sys.executable, "-m", "pytest", "-q", "--rootdir", tmp_path, tmp_path, **options)
    again = run_command("bash", ROOT / ".ci/second-try", tmp_path, **options)
    assert (again.returncode == 0) == passes
    assert len(re.findall(r"^ci: second try: test_tries\.py::test_that_", again.stderr, re.M)) == flaky + broken
    assert ("at most 2 are tried again" in again.stderr) == (flaky + broken > 2)


SKIPS = """
import pytest
@pytest.mark.skipif(True, reason="apt-get install something")
def test_package(): pass
@pytest.mark.skipif(True, reason="torch finds no GPU")
def test_gpu(): pass
@pytest.mark.xfail
def test_fault(): assert False
"""


@pytest.mark.slow
@pytest.mark.parametrize(("value", "failed"), [("1", ["test_module.py", "test_tests.py::test_package"]), ("", [])])
def test_a_skip_fails_where_everything_is_installed(value: str, failed: list[str], tmp_path: Path) -> None:
    """Unless the machine itself lacks what a test needs; a module can be skipped, too."""
    (tmp_path / "test_tests.py").write_text(SKIPS, encoding="utf-8")
    (tmp_path / "test_module.py").write_text("import pytest\npytest.importorskip('absent')\n", encoding="utf-8")
    variables = environment(HAT_NO_SKIPS=value, PYTHONPATH=ROOT / "tests/support")
    command = (
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "skips",
        "-p",
        "no:cacheprovider",
        "-rfE",
        "--continue-on-collection-errors",
    )
    printed = run_command(*command, tmp_path, check=False, cwd=tmp_path, env=variables).stdout
    assert re.findall(r"^(?:FAILED|ERROR) (\S+)", printed, re.M) == failed, printed
    assert "1 xfailed" in printed
