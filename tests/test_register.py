"""The plugin registers itself with fairseq, whichever of the two is imported first, and leaves it alone until then."""

from __future__ import annotations

import sys

import pytest
from commands import run_command

CHECK = """
import sys
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.tasks import TASK_REGISTRY
assert "document_to_text" in TASK_REGISTRY and "masked_document_lm" in TASK_REGISTRY
assert "hat_bart_base" in ARCH_MODEL_REGISTRY and "hierarchical_transformer" in ARCH_MODEL_REGISTRY
assert "masked_lm_from_sentences" in CRITERION_REGISTRY
import fairseq.options, hat_fairseq
assert hasattr(fairseq.options.parse_args_and_arch, "_hat_fairseq") and hat_fairseq.import_error is None
"""


@pytest.mark.parametrize(
    "first",
    [
        "import hat_fairseq",
        "import fairseq, hat_fairseq",
        "import hat_fairseq.compat",
        "import hat_fairseq.processes",
        "import hat_fairseq.register",
        "import hat_fairseq.tasks.document_bpe",
        "import hat_fairseq.models.hat_bart",
        "import hat_fairseq.criterions.document_labels",
        "import hat_fairseq.generation.beam_search",
        "import hat_fairseq.hub",
    ],
)
def test_registered_with_fairseq(first: str) -> None:
    run_command(sys.executable, "-c", f"{first}\n{CHECK}")


def test_light_parts_do_not_load_fairseq_or_torch() -> None:
    light = "import hat_fairseq.cli, hat_fairseq.data.preprocess, hat_fairseq.scoring.command, hat_fairseq.recipe, sys"
    run_command(sys.executable, "-c", f"{light}\nassert not {{'fairseq', 'torch'}} & sys.modules.keys()")


def test_without_fairseq_the_import_says_so_when_it_is_needed() -> None:
    hidden = "import sys\nsys.modules['fairseq'] = None\n"
    done = run_command(sys.executable, "-c", f"{hidden}import hat_fairseq\nprint(hat_fairseq.import_error)")
    assert "hat_fairseq is not registered with fairseq" in done.stderr
    assert "fairseq" in done.stdout
