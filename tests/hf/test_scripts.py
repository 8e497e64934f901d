"""What programs around transformers do with these models: a model card, compilation, several processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from building import PAD, documents
from copied import change, replica_of
from hat_tokenizers import SENTENCES, bpe_of, exported
from helpers import assert_close
from hf_models import encoder
from torch import nn

from hat_fairseq.data.options import Settings
from hat_fairseq.data.pipeline import TextPipeline

transformers = pytest.importorskip("transformers", reason="make setup")
from hat_fairseq import hf  # noqa: E402

LENGTHS = [17, 9, 12, 5]


def test_the_model_card_of_chalkidis_et_al(tmp_path: Path) -> None:
    """The code of their card for hierarchical-transformer-base-4096, without its misspelt names, on our folder."""
    tokenizer, dictionary = exported(tmp_path, TextPipeline(Settings(), bpe_of("learned", tmp_path)), limit=64)
    folder = tmp_path / "out"
    config = encoder("segments", {})[1]
    config.vocab_size = len(dictionary)
    hf.HatForMaskedLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    name = str(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(name, trust_remote_code=True)
    mlm_model = transformers.AutoModelForMaskedLM.from_pretrained(name, trust_remote_code=True)
    doc_classifier = transformers.AutoModelForSequenceClassification.from_pretrained(name, trust_remote_code=True)
    choices = transformers.AutoModelForMultipleChoice.from_pretrained(name, trust_remote_code=True)
    sentences = hf.HatForSegmentClassification.from_pretrained(name)
    inputs = tokenizer([SENTENCES, SENTENCES[:1]], return_tensors="pt")
    tokens = inputs["input_ids"]
    assert mlm_model(**inputs).logits.shape == (*tokens.shape, len(dictionary))
    assert doc_classifier(**inputs).logits.shape == (2, 2)
    assert sentences(**inputs).logits.shape == (2, int(tokens.eq(0).sum(dim=1).max()), 2)
    pairs = {key: torch.stack([value, value.flip(0)], dim=1) for key, value in inputs.items()}
    assert choices(**pairs).logits.shape == (2, 2)


def test_left_padding_of_segments_of_one_length_is_refused() -> None:
    """There padding counts as a position, so the segments would begin elsewhere."""
    sizes = {"encoder_embed_dim": 8, "encoder_ffn_embed_dim": 8, "encoder_attention_heads": 2, "segment_length": 8}
    model = hf.HatModel(hf.HatConfig("hierarchical_transformer", sizes, vocab_size=60)).eval()
    tokens = documents([17, 9])
    tokens[1] = tokens[1].roll(8)
    with pytest.raises(
        ValueError, match="padding on the left, or a token that is masked: the segments of hierarchical_transformer"
    ):
        model(tokens)
    left_out = torch.ones_like(tokens)
    left_out[0, 4] = 0
    with pytest.raises(ValueError, match="or a token that is masked: the segments of hierarchical_transformer"):
        model(documents([17, 17]), attention_mask=left_out)
    model(torch.cat([tokens[:1], torch.full_like(tokens[:1], PAD)]))  # a row of nothing else has no side


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "backend", "batches"),
    [
        ("hat", "inductor", [LENGTHS]),
        ("hat", "aot_eager", [LENGTHS, [30, 21]]),
        ("window", "aot_eager", [LENGTHS, [30, 21]]),
    ],
)
def test_a_compiled_encoder_computes_the_same(name: str, backend: str, batches: list[list[int]]) -> None:
    """As torch compiles it, in a minute of CPU time; and with the same graphs, run by the usual operators."""
    model, config = encoder(name, {"text": "document"})
    config.heads = {}
    peer = hf.HatModel(config).eval()
    compiled = torch.compile(peer, backend=backend)
    with torch.no_grad():
        for lengths in batches:
            tokens = documents(lengths)
            states, expected = (each(tokens).last_hidden_state[tokens.ne(PAD)] for each in (compiled, peer))
            assert_close(states, expected)


PROGRAM = """
import sys
import torch
from accelerate import Accelerator
import hat_fairseq.hf
from transformers import AutoModelForSequenceClassification

accelerator = Accelerator(cpu=True)
model = AutoModelForSequenceClassification.from_pretrained(sys.argv[1])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = accelerator.prepare(model, optimizer)
model.eval()
tokens, labels = torch.load(sys.argv[2])
mine = slice(accelerator.process_index, None, accelerator.num_processes)
for _ in range(3):
    optimizer.zero_grad()
    accelerator.backward(model(tokens[mine], labels=labels[mine]).loss)
    optimizer.step()
if accelerator.is_main_process:
    torch.save(accelerator.unwrap_model(model).state_dict(), sys.argv[3])
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hat", "segments"])
def test_two_processes_train_as_one(name: str, tmp_path: Path) -> None:
    """Data parallel over gloo, by accelerate: the gradients are those of the whole batch in this process."""
    pytest.importorskip("accelerate", reason="make setup")
    config = encoder(name, {})[1]
    torch.manual_seed(1)
    hf.HatForSequenceClassification(config).save_pretrained(tmp_path / "model")
    tokens, labels = documents(LENGTHS), torch.tensor([0, 1, 1, 0])
    torch.save((tokens, labels), tmp_path / "batch.pt")
    (tmp_path / "train.py").write_text(PROGRAM, encoding="utf-8")
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", tmp_path / "train.py"]
    words = [*launch, tmp_path / "model", tmp_path / "batch.pt", tmp_path / "two.pt"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
    done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    model = hf.HatForSequenceClassification.from_pretrained(tmp_path / "model").eval()
    start = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(tokens, labels=labels).loss.backward()
        optimizer.step()
    two = torch.load(tmp_path / "two.pt")
    for key, tensor in model.state_dict().items():
        assert_close(two[key], tensor)
    assert any(not torch.equal(two[key], start[key]) for key in start)


def test_a_replica_is_bound_to_itself() -> None:
    """`nn.DataParallel`, in which Trainer wraps a model on several GPUs."""
    model, config = encoder("hat", {"text": "document"})
    config.heads = {"text": config.heads["text"]}
    config.num_labels = 3
    peer: nn.Module = hf.HatForSequenceClassification(config).eval()
    tokens = documents(LENGTHS)
    replica = replica_of(peer)
    change(replica)
    expected = replica(tokens).logits
    assert not torch.allclose(peer(tokens).logits, expected)
    change(peer)
    assert torch.equal(peer(tokens).logits, expected)
