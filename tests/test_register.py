"""The plugin registers itself with fairseq when it is asked to, once, and leaves fairseq alone until then."""

import sys
from pathlib import Path

import pytest
from commands import USER_DIR, run_command

CHECK = """
import sys
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.registry import REGISTRIES
from fairseq.tasks import TASK_REGISTRY
assert "document_to_text" in TASK_REGISTRY and "masked_document_lm" in TASK_REGISTRY
assert "hat_bart_base" in ARCH_MODEL_REGISTRY and "hierarchical_transformer" in ARCH_MODEL_REGISTRY
assert "self_attention_regularization" in CRITERION_REGISTRY and "document" in REGISTRIES["bpe"]["registry"]
import fairseq.file_io, hat_fairseq
wrapped = fairseq.file_io.PathManager.copy.__wrapped__
assert not hasattr(wrapped, "__wrapped__")  # wrapped once
# Binaries of fairseq that are linked to the torch that they were built with; a wheel may have been built with another.
import fairseq_cli.train, fairseq_cli.generate, fairseq.data.data_utils_fast
from pathlib import Path
libraries = Path("/proc/self/maps").read_text()
assert "data_utils_fast" in libraries
assert not [name for name in ("libbase.", "libnat.", "alignment_train") if name in libraries]
"""
AS_USER_DIR = f"""
import argparse, fairseq.utils
for _ in range(2):
    fairseq.utils.import_user_module(argparse.Namespace(user_dir={str(USER_DIR)!r}))
"""


@pytest.mark.slow
@pytest.mark.fault("Installation", "the plugin is imported twice, or in another way", "registered once")
@pytest.mark.parametrize(
    "first",
    [
        AS_USER_DIR,
        "import fairseq, hat_fairseq",
        "from hat_fairseq.register import register\nregister()\nregister()",
        "import hat_fairseq.tasks.encoder_task, hat_fairseq.criterions.labels",
        "import hat_fairseq.models.hat_transformer",
    ],
)
def test_registered_with_fairseq(first: str) -> None:
    run_command(sys.executable, "-c", f"{first}\n{CHECK}")


def test_importing_the_package_alone_leaves_the_import_system_alone() -> None:
    script = "import sys\nbefore = list(sys.meta_path)\nimport hat_fairseq\nassert sys.meta_path == before\n"
    script += "assert not {'fairseq', 'torch'} & sys.modules.keys()"
    run_command(sys.executable, "-c", script)


OWN_PROGRAM = """
import sys, fairseq
before = sys.excepthook
from hat_fairseq.register import register
register()
from fairseq import options
words = "data --task document_to_text --arch hat_bart_base"
options.parse_args_and_arch(options.get_training_parser(), words.split())
assert sys.excepthook is before
open(sys.argv[1])
"""


@pytest.mark.slow
def test_a_program_that_registers_the_plugin_keeps_its_tracebacks(tmp_path: Path) -> None:
    result = run_command(sys.executable, "-c", OWN_PROGRAM, tmp_path / "missing", check=False)
    assert "Traceback" in result.stderr
    assert "hat_fairseq: error" not in result.stderr
    assert result.stderr.splitlines()[-1].startswith("FileNotFoundError")


@pytest.mark.fault("Installation", "`--user-dir` is a link or copy of another name", "states the name it needs, exit 1")
def test_a_user_dir_of_another_name_is_refused_with_one_line(run, tmp_path: Path) -> None:
    (tmp_path / "plugin").symlink_to(USER_DIR)
    result = run("fairseq-train", tmp_path, "--user-dir", tmp_path / "plugin", check=False)
    expected = f"hat_fairseq: error: --user-dir {tmp_path / 'plugin'}: the folder must be named hat_fairseq"
    assert result.returncode == 1
    assert result.stderr.strip().splitlines()[-1] == expected
    assert "Traceback" not in result.stderr
