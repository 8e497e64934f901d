"""Adapters of peft (LoRA, Hu et al. 2022) on every projection: trained, merged, packed, and back from a folder."""

from pathlib import Path
from typing import Any

import pytest
import torch
from building import EOS, PAD, documents, targets
from helpers import assert_close
from hf_models import ENCODERS, WRITERS, encoder, filled, roles_of, shaken, writer
from torch import Tensor

from hat_fairseq.kernels import Linear, cpu_precisions

transformers = pytest.importorskip("transformers", reason="make setup")
peft = pytest.importorskip("peft", reason="make setup")
from hat_fairseq import hf  # noqa: E402
from hat_fairseq.hf.modeling import HEAD  # noqa: E402

MAPS = ["q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2"]
SOURCE = documents([40, 23, 9, 30])


def adapted(model: Any, folder: Path, auto: Any, **options: Any) -> Any:
    """The model as its folder gives it, with random adapters on its maps, no map left out."""
    model.save_pretrained(folder)
    loaded = auto.from_pretrained(folder)
    number = sum(isinstance(m, Linear) and name.split(".")[-1] in MAPS for name, m in loaded.named_modules())
    torch.manual_seed(1)
    options = {"r": 4, "target_modules": MAPS} | options
    model = peft.get_peft_model(loaded, peft.LoraConfig(init_lora_weights=False, **options))
    adapters = [m for m in model.modules() if isinstance(m, peft.tuners.lora.LoraLayer)]
    assert sum(isinstance(m.get_base_layer(), Linear) for m in adapters) == number > 10
    return model.eval()


def train_a_step(model: Any, batch: dict[str, Tensor]) -> None:
    """One update, after which the loss is lower; every adapter is trained, and nothing else."""
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    optimizer = torch.optim.SGD(parameters.values(), lr=0.01)
    loss = model(**batch).loss
    loss.backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in parameters.values())
    assert all("lora_" in name or "modules_to_save" in name for name in parameters)
    optimizer.step()
    assert model(**batch).loss < loss


def check(model: Any, batch: dict[str, Tensor], folder: Path, auto: Any, real: Any = slice(None)) -> Any:
    """The adapters count, and as much when merged, packed or loaded. Returns the merged model; `real`: no padding."""
    train_a_step(model, batch)
    with torch.no_grad():
        expected = model(**batch).logits
        with model.disable_adapter():
            assert (model(**batch).logits - expected).abs().max() > 0.01
        model.save_pretrained(folder / "adapter")
        assert_close(from_folder(folder, auto)(**batch).logits, expected)
        for precision in cpu_precisions():
            (packed := from_folder(folder, auto)).get_base_model().prepare_for_inference(precision)
            assert_near(packed(**batch).logits[real], expected[real], precision)
        merged = model.merge_and_unload()
        assert_close(merged(**batch).logits, expected)
    return merged


def assert_near(actual: Tensor, expected: Tensor, precision: str) -> None:
    error = (actual - expected).norm() / expected.norm()
    assert error < (1e-5 if precision == "fp32" else 0.06)


def from_folder(folder: Path, auto: Any) -> Any:
    return peft.PeftModel.from_pretrained(auto.from_pretrained(folder), folder / "adapter").eval()


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITERS)
def test_an_encoder_decoder(name: str, tmp_path: Path) -> None:
    original, peer = writer(name)
    target, roles = targets(4, 9), roles_of(original, SOURCE)
    auto = transformers.AutoModelForSeq2SeqLM
    model = adapted(peer, tmp_path, auto, task_type="SEQ_2_SEQ_LM" if not roles else None)
    batch = {"input_ids": SOURCE, "labels": torch.cat([target[:, 1:], torch.full((4, 1), EOS)], dim=1), **roles}
    options = {**roles, "num_beams": 3, "max_length": 12, "min_length": 6}
    merged = check(model, batch, tmp_path, auto)
    texts = [each.generate(input_ids=SOURCE, **options) for each in (from_folder(tmp_path, auto), merged)]
    assert torch.equal(*texts)


@pytest.mark.slow
@pytest.mark.parametrize("name", ENCODERS)
def test_an_encoder(name: str, tmp_path: Path) -> None:
    """With the masked-LM head."""
    model, config = encoder(name, {})
    auto = transformers.AutoModelForMaskedLM
    peer = adapted(filled(model, hf.HatForMaskedLM(config)), tmp_path, auto)
    check(peer, {"input_ids": SOURCE, "labels": SOURCE}, tmp_path, auto, SOURCE != PAD)


@pytest.mark.parametrize("name", ["hat", "segments", "bart", "tables"])
def test_all_linear_maps(name: str, tmp_path: Path) -> None:
    """peft's own choice of maps, which leaves out the output projection: merged and saved."""
    peer = writer(name)[1] if name in WRITERS else shaken(hf.HatForMaskedLM(encoder(name, {})[1]))
    labels = targets(4, 9) if name in WRITERS else SOURCE
    batch = {"input_ids": SOURCE, "labels": labels}
    options: dict[str, Any] = {"target_modules": "all-linear", "r": 4, "init_lora_weights": False}
    model = peft.get_peft_model(peer, peft.LoraConfig(**options)).eval()
    adapted = {key.split(".")[-1] for key, m in model.named_modules() if isinstance(m, peft.tuners.lora.LoraLayer)}
    assert adapted >= {*MAPS}
    assert not adapted & {"lm_head", "output_projection"}
    train_a_step(model, batch)
    with torch.no_grad():
        expected = model(**batch).logits
        merged = model.merge_and_unload()
        assert_close(merged(**batch).logits, expected)
        merged.save_pretrained(tmp_path)
        assert_close(type(merged).from_pretrained(tmp_path)(**batch).logits, merged(**batch).logits)


@torch.no_grad()
@pytest.mark.parametrize("precision", cpu_precisions())
@pytest.mark.parametrize("names", [["q_proj"], ["k_proj"], ["v_proj"], ["q_proj", "v_proj"], ["fc1"], ["fc2"]])
def test_adapters_on_some_packed_maps(names: list[str], precision: str) -> None:
    """Maps that are packed and others have one data type in attention."""
    _, peer = writer("tables")
    model = peft.get_peft_model(peer, peft.LoraConfig(init_lora_weights=False, target_modules=names)).eval()
    batch = {"input_ids": SOURCE, "decoder_input_ids": targets(4, 9)}
    expected = model(**batch).logits
    peer.prepare_for_inference(precision)
    assert_near(model(**batch).logits, expected, precision)


def with_head(name: str, base: Path) -> Any:
    """A model with a new head; in each call another one."""
    return getattr(hf, f"HatFor{name}").from_pretrained(base)


TRAINED = {
    "SequenceClassification": ("SEQ_CLS", {"labels": torch.tensor([0, 1, 0, 1])}),
    "TokenClassification": ("TOKEN_CLS", {"labels": SOURCE % 2}),
    "QuestionAnswering": (
        "QUESTION_ANS",
        {"start_positions": torch.tensor([1, 2, 3, 4]), "end_positions": torch.tensor([2, 3, 4, 5])},
    ),
    "MultipleChoice": (None, {"labels": torch.tensor([1, 0])}),
    "SegmentClassification": ("FEATURE_EXTRACTION", {}),
}
MADE: dict[str, Any] = {
    "lora": lambda **options: peft.LoraConfig(r=4, **options),
    "ia3": lambda **options: peft.IA3Config(feedforward_modules=[], **options),
    "loha": lambda **options: peft.LoHaConfig(r=2, **options),
    "all": lambda **options: peft.LoraConfig(r=4, **options | {"target_modules": "all-linear"}),
    "named": lambda **options: peft.LoraConfig(r=4, modules_to_save=[HEAD], **options),
}


@pytest.mark.parametrize(
    ("name", "made"),
    [*((name, "lora") for name in TRAINED), *(("SequenceClassification", made) for made in [*MADE][1:])],
)
def test_a_new_head_is_trained_and_saved_with_adapters(name: str, made: str, tmp_path: Path) -> None:
    """As peft does it for BERT; the base folder has no head, so that each model begins with another one."""
    kind, labels = TRAINED[name]
    shaken(hf.HatForMaskedLM(encoder("window", {})[1])).save_pretrained(tmp_path)
    adapters = MADE[made](task_type=kind, target_modules=["q_proj", "v_proj"])
    model, source = peft.get_peft_model(with_head(name, tmp_path), adapters), SOURCE
    source = SOURCE.unflatten(0, (2, 2)) if name == "MultipleChoice" else SOURCE
    trained = [
        key for key, p in model.named_parameters() if p.requires_grad and "lora_" not in key and "_l." not in key
    ]
    assert sum("classification_heads" in key for key in trained) == 4
    if labels:
        optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
        model(input_ids=source, **labels).loss.backward()
        optimizer.step()
    model.eval().save_pretrained(tmp_path / "adapter")
    loaded = peft.PeftModel.from_pretrained(with_head(name, tmp_path), tmp_path / "adapter").eval()
    with torch.no_grad():
        expected, actual = (each(input_ids=source).to_tuple()[0] for each in (model, loaded))
    assert_close(actual, expected)
    if made in ("lora", "all", "named"):  # the others of peft merge no head that has a hidden layer
        (merged := loaded.merge_and_unload()).save_pretrained(tmp_path / "merged")
        merged = type(merged).from_pretrained(tmp_path / "merged")
        assert_close(merged(input_ids=source).to_tuple()[0], expected)


def test_adapters_that_would_lose_a_new_head_are_refused(tmp_path: Path) -> None:
    """Beside a trained head they are not."""
    shaken(hf.HatForMaskedLM(encoder("window", {})[1])).save_pretrained(tmp_path)
    model = with_head("SequenceClassification", tmp_path)
    adapters = peft.TrainableTokensConfig(token_indices=[5], target_modules=["embed_tokens"])
    with pytest.raises(ValueError, match=f"neither train nor save the new head classification_heads.{HEAD}"):
        peft.get_peft_model(model, adapters)
    model.save_pretrained(tmp_path / "trained")
    peft.get_peft_model(hf.HatForSequenceClassification.from_pretrained(tmp_path / "trained"), adapters)


@pytest.mark.slow
def test_a_classifier(tmp_path: Path) -> None:
    """Its new head is trained as a whole and saved with the adapters, as `modules_to_save` asks."""
    peer = shaken(hf.HatForSequenceClassification(encoder("hat", {})[1]))
    auto = transformers.AutoModelForSequenceClassification
    model = adapted(peer, tmp_path, auto, task_type="SEQ_CLS", modules_to_save=[HEAD])
    check(model, {"input_ids": SOURCE, "labels": torch.tensor([0, 1, 0, 1])}, tmp_path, auto)
