"""A checkpoint of plain data must not run code: what it may name, and which of its settings fairseq would evaluate."""

import json
import subprocess
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from building import TINY, dictionary
from commands import USER_DIR
from fairseq import checkpoint_utils, options, tasks
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from omegaconf import OmegaConf

from hat_fairseq.fairseq_fixes.settings import recorded_flags
from hat_fairseq.fairseq_fixes.trust import TRUST, CheckpointError
from hat_fairseq.model_folder import bare_checkpoint

LAYOUTS = ["args", "cfg"]  # of old and of new checkpoints


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., Path]:
    """Writes the checkpoint of a small fairseq model, with changed settings."""
    words = dictionary(["a", "b"])
    for language in ("source", "target"):
        words.save(str(tmp_path / f"dict.{language}.txt"))

    def write(layout: str, built: str = "transformer", weights: bool = False, **settings: object) -> Path:
        flags = [str(tmp_path), "--task", "translation", "-s", "source", "-t", "target", "--arch"]
        sizes = [] if built == "fconv" else TINY.split()
        args = options.parse_args_and_arch(options.get_training_parser(), [*flags, built, *sizes])
        for name, value in settings.items():
            setattr(args, name, value)
        model = tasks.setup_task(args).build_model(args).state_dict() if weights else {}
        state: dict[str, Any] = bare_checkpoint(model)
        if layout == "args":
            state["args"] = args
        else:
            plain = options.parse_args_and_arch(options.get_training_parser(), [*flags, "transformer"])
            cfg = OmegaConf.to_container(convert_namespace_to_omegaconf(plain), resolve=True, enum_to_str=True)
            state["cfg"] = {**cfg, "model": Namespace(**{**vars(args), "_name": args.arch})}
        torch.save(state, tmp_path / "model.pt")
        return tmp_path / "model.pt"

    return write


def load(path: Path) -> None:
    checkpoint_utils.load_model_ensemble_and_task([str(path)])


REFUSED: list[tuple[dict[str, str], str]] = [
    ({"arch": "fconv", "encoder_layers": "{}"}, "names fairseq's model 'fconv'"),
    ({"arch": "nosuch"}, "names the model 'nosuch', which nothing has registered"),
    ({"adaptive_softmax_cutoff": "{}"}, "its setting adaptive_softmax_cutoff is not a literal: fairseq would run it"),
    ({"encoder_xformers_att_config": "{}"}, "its setting encoder_xformers_att_config is not a literal"),
    ({"source_lang": "${{oc.env:HOME}}"}, "omegaconf would fill in the setting '..oc.env:HOME"),
]


@pytest.mark.slow
@pytest.mark.fault("Security", "a checkpoint whose settings name variables of the environment", "refused")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_settings_that_fairseq_would_run_are_refused(save, tmp_path: Path, layout: str) -> None:
    code = f"__import__('pathlib').Path({str(tmp_path / 'ran')!r}).touch()"
    for settings, message in REFUSED:
        changed = {name: value.format(code) for name, value in settings.items()}
        path = save(layout, "fconv" if settings.get("arch") == "fconv" else "transformer", **changed)
        with pytest.raises(CheckpointError, match=f"model.pt: .*{message}"):
            load(path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("kind", "name"), [("task", "language_modeling"), ("criterion", "ctc")])
def test_the_task_and_the_criterion_are_checked_too(kind: str, name: str, save, layout: str) -> None:
    path = save("args", **{kind: name})
    if layout == "cfg":
        path = save("cfg")
        state = torch.load(path, weights_only=True)
        state["cfg"][kind] = {"_name": name}
        torch.save(state, path)
    with pytest.raises(CheckpointError, match=f"names fairseq's {kind} '{name}'"):
        load(path)


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_others_are_loaded(save, monkeypatch, layout: str) -> None:
    """Literals stay, and a name can be trusted."""
    monkeypatch.setenv(TRUST, "lstm,fconv")
    small = {f"{side}_embed_dim": 8 for side in ("encoder", "decoder", "decoder_out")}
    small |= {"encoder_layers": "[(8, 3)]", "decoder_layers": "[(8, 3)]"}
    for arch, settings in (("transformer", {"adaptive_softmax_cutoff": "[2, 3]"}), ("bart_base", {}), ("fconv", small)):
        load(save(layout, arch, weights=True, **settings))


@pytest.mark.slow
def test_parts_of_a_user_are_allowed(save) -> None:
    @register_criterion("of_a_user", dataclass=FairseqDataclass)
    class OfAUser(FairseqCriterion):
        pass

    load(save("args", weights=True, criterion="of_a_user"))


@pytest.mark.slow
@pytest.mark.fault("Security", "a checkpoint whose settings are code", "refused by every command, nothing is run")
def test_commands_refuse_them(run, ami: Path, checkpoint: Path, tmp_path: Path) -> None:
    """The path of `fairseq-generate`, `hat generate` and the Python interface is one."""
    state, evil = torch.load(checkpoint, weights_only=True), tmp_path / "evil.pt"
    code = f"__import__('os').system('touch {tmp_path / 'ran'}')"
    state["cfg"]["model"] = {"_name": "fconv", "encoder_layers": code, "decoder_layers": code}
    torch.save(state, evil)
    document = {"id": "a", "turns": [{"role": "PM", "text": "Good morning."}]}
    (tmp_path / "a.jsonl").write_text(json.dumps(document) + "\n")
    flags = ["--user-dir", USER_DIR, "--task", "document_to_text", "--role-stream", "role", "--cpu", "--batch-size", 1]
    for command in ("fairseq-generate", "fairseq-interactive", "fairseq-validate"):
        refused = run(command, ami / "bin", *flags, "--path", evil, check=False, stdin=subprocess.DEVNULL)
        assert refused.returncode == 1
        assert "evil.pt: refused, because it names" in refused.stderr.splitlines()[-1]
    words = [tmp_path / "a.jsonl", "--data", ami / "bin", "--out", tmp_path / "out.jsonl"]
    refused = run("hat", "generate", evil, *words, check=False)
    assert refused.returncode == 2
    assert "evil.pt: refused, because it names" in refused.stderr.splitlines()[-1]
    assert not (tmp_path / "ran").exists()


@pytest.mark.slow
def test_what_the_checkpoint_knows_is_not_said_again(run, ami: Path, checkpoint: Path, tmp_path: Path) -> None:
    """The task, its role stream and its lengths, in fairseq-generate and hat generate; given flags count."""
    common = ["--path", checkpoint, "--cpu", "--batch-size", 4, "--max-len-b", 4]
    said = ["--task", "document_to_text", "--role-stream", "role", "--max-source-positions", 128]
    words = ["fairseq-generate", ami / "bin", "--user-dir", USER_DIR, *common]
    outputs = (run(*words, *flags).stdout for flags in ([], said))
    lines = [[line for line in output.splitlines() if line.startswith("H-")] for output in outputs]
    assert lines[0] == lines[1]
    assert len(lines[0]) == 6
    short = run(*words, "--max-source-positions", 99, check=False)
    assert short.returncode == 1
    assert "are longer than the model takes, 99; " in short.stdout + short.stderr
    words = [checkpoint, ami / "bin", "--device", "cpu", "--max-len-b", 4]
    run("hat", "generate", *words, "--out", tmp_path / "out/test.jsonl")
    assert len((tmp_path / "out/test.jsonl").read_text().splitlines()) == 6
    assert recorded_flags(str(tmp_path / "none.pt"), None) == []
    assert recorded_flags(str(checkpoint), "translation") == []
