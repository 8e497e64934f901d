#!/usr/bin/env python3
"""Which long attention carries words from afar, and which only topics?

    python studies/copied_words.py data-bin/roles/bin minilm/model.pt --size small

A masked LM reads papers of SumPubmed and predicts rare words: words of three letters or more that fewer than 5 % of
the training papers have. Of each rare word in each chunk of 512 tokens all occurrences are masked with probability
0.15, otherwise each one with 0.15; all pieces of an occurrence are masked. The figures are bits a masked piece by the
distance to the nearest occurrence of the word that is not masked, in tokens; `none`: the paper has no other one. Less
is better. An attention that carries words lowers the loss of words that occur elsewhere more than that of `none`.

Embeddings and the four lower layers of MiniLM are frozen and read chunks of 512 tokens. First the two upper layers and
a masked-LM head, whose table is that of the embeddings, learn in chunks; then each arm goes on from there with its own
attention in these layers, on the same masks. The rules are the frequencies of masked pieces (`frequencies`), and their
mixture with the pieces of the rare words that the paper shows (`frequencies and words of the paper`). `--size full`
reads up to 4,096 tokens and is for one GPU; with `--minutes` no arm begins that would end later. Head and learning
rates were chosen by the training loss of chunks in the first 150 updates.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import benchmark_path  # noqa: F401 finds `harness`
import torch
import torch.nn.functional as F
from harness import RESULTS, flags, record_of
from masked_words import BINS, Masked, Words, masked
from pretrained_data import DEVICE, LOWER, PRODUCTS, ROBERTA, Data, products, states_of
from pretrained_hierarchy import ARMS as OTHERS
from pretrained_hierarchy import fit
from pretrained_tasks import TASKS, WIDTH, Document
from study_table import Key, add_missing
from torch import Tensor, nn

from hat_fairseq.modules.heads import MaskedLMHead

ARMS = {"chunks": OTHERS["chunks"].model, "full": f"{ROBERTA} full"}
ARMS |= {name: OTHERS[name].model for name in ("HAT", "SD", "representatives", "window", "S", "blocks", "two levels")}
RULES = {"frequencies": False, "frequencies and words of the paper": True}
RATES, SMOOTHING = (3e-4, 1e-3), 0.1  # learning rates of the upper layers and of the head


@dataclass(frozen=True)
class Size:
    """Tokens of a paper; papers; passes over them before the arms; updates of an arm; test papers and masks of each."""

    tokens: int
    papers: int
    passes: int
    updates: int
    tests: int
    masks: int


SIZES = {"small": Size(2048, 100, 3, 50, 50, 1), "full": Size(4096, 400, 12, 1200, 170, 2)}


class Head(MaskedLMHead):
    """A masked-LM head that begins as the identity, so that a state which attends to a word is near its embedding."""

    def __init__(self, table: Tensor, log_frequencies: Tensor) -> None:
        super().__init__(WIDTH, len(table), "gelu", table)
        self.activation = nn.Identity()
        nn.init.eye_(self.dense.weight)
        nn.init.zeros_(self.dense.bias)
        nn.init.constant_(self.layer_norm.weight, 0.3)  # logits of about the spread of the frequencies
        self.bias.data.copy_(log_frequencies)


class Network:
    """The two upper layers of an arm and a masked-LM head, and their loss of a paper."""

    def __init__(self, data: Data, flags: str, frequencies: Tensor, seed: int) -> None:
        self.data, self.encoder = data, data.model(flags, seed)
        table = self.encoder.embed_tokens.weight.requires_grad_(False)
        self.head = Head(table, frequencies.log()).to(DEVICE)
        self.upper = self.encoder.layers[LOWER:]
        self.modules = nn.ModuleList([self.upper, self.head])

    def groups(self) -> list[dict[str, Any]]:
        """The parameters with their learning rates; the table is not trained."""
        trained = ([p for p in each.parameters() if p.requires_grad] for each in (self.upper, self.head))
        return [{"params": own, "lr": rate} for own, rate in zip(trained, RATES, strict=True)]

    def lower(self, paper: Masked) -> Tensor:
        """The states of the lower layers, from files on a CPU; a GPU computes them faster than it reads them."""
        if DEVICE.type == "cpu":
            return self.data.lower(paper.document)[0]
        with torch.no_grad():
            return states_of(self.data.below[0], paper.document.tokens[None])

    def nll(self, paper: Masked) -> Tensor:
        """(M,) nats of the masked pieces."""
        states = states_of(self.encoder, paper.document.tokens[None], states=self.lower(paper))
        with products():
            logits = self.head(states[0, paper.places.to(DEVICE)])
        return F.cross_entropy(logits.float(), paper.targets.to(DEVICE), reduction="none")

    def loss(self, paper: Masked) -> Tensor:
        return self.nll(paper).sum() / max(1, len(paper.places))


def by_bin(bits: Sequence[float], bins: Sequence[str]) -> dict[str, list[float]]:
    """Sum and number of the pieces in each bin, and of all."""
    rows = {name: [0.0, 0] for name in ("all", *BINS)}
    for value, name in zip(bits, bins, strict=True):
        for own in (rows["all"], rows[name]):
            own[0] += value
            own[1] += 1
    return {name: [round(total, 4), count] for name, (total, count) in rows.items()}


def scores_of(nats: Iterable[tuple[Masked, Tensor]]) -> dict[str, Any]:
    """The figures of each test paper, over all its masks."""
    bits: dict[str, tuple[list[float], list[str]]] = {}
    for paper, values in nats:
        own = bits.setdefault(paper.document.id.rpartition(".")[0], ([], []))
        own[0].extend((values / torch.tensor(2.0).log()).tolist())
        own[1].extend(paper.bins)
    return {name: by_bin(*own) for name, own in bits.items()}


class Study:
    """The papers with their masks, and the network that all arms start from."""

    def __init__(self, data: Data, size: Size, seed: int) -> None:
        self.data, self.size, self.seed, self.minilm = data, size, seed, data.state
        dictionary, train = data.reader.source_dictionary, data.splits["train"]
        words, mask = Words(dictionary.symbols, [each.tokens for each in train]), dictionary.index("<mask>")

        def papers(documents: Sequence[Document], first: int, end: int) -> list[Masked]:
            cut = [(each.id, each.tokens[: size.tokens]) for each in documents]
            rare = [[pair for pair in words.placed(tokens) if words.is_rare(pair[1])] for _, tokens in cut]
            return [masked(*pair, own, mask, n) for n in range(first, end) for pair, own in zip(cut, rare, strict=True)]

        self.earlier = papers(train[: size.papers], 0, size.passes)
        later = -(-size.updates // size.papers)
        self.train = papers(train[: size.papers], size.passes, size.passes + later)[: size.updates]
        self.tests = papers(data.splits["test"][: size.tests], 0, size.masks)
        targets = torch.cat([paper.targets for paper in self.earlier])
        self.frequencies = F.normalize(torch.bincount(targets, minlength=len(dictionary)) + SMOOTHING, p=1, dim=0)

    def trained(self, network: Network, papers: Sequence[Masked]) -> None:
        """Trains one pass over the papers, an update each."""
        for _ in fit(network.groups(), network.modules, papers, network.loss, 1, 1, self.seed):
            network.modules.eval()

    @cached_property
    def start(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The weights after training in chunks: of the upper layers, named as MiniLM's, and of the head."""
        path = self.data.cache / f"start.{self.seed}.pt"
        if not path.is_file():
            network = Network(self.data, ARMS["chunks"], self.frequencies, self.seed)
            self.trained(network, self.earlier)
            layers = network.encoder.layers.state_dict(prefix="encoder.sentence_encoder.layers.")
            names = {name.replace("segment_wise.", ""): tensor for name, tensor in layers.items()}
            torch.save((names, network.head.state_dict()), path)
        return torch.load(path, map_location="cpu")

    def run(self, arm: str) -> dict[str, Any]:
        """Trains an arm and measures it."""
        layers, head = self.start
        assert layers.keys() <= self.minilm.keys()
        begin, self.data.state = time.process_time(), {**self.minilm, **layers}
        network = Network(self.data, ARMS[arm], self.frequencies, self.seed)
        self.data.state = self.minilm
        network.head.load_state_dict(head)
        self.trained(network, self.train)
        size = sum(p.numel() for group in network.groups() for p in group["params"])
        with torch.no_grad():
            scores = scores_of((paper, network.nll(paper).cpu()) for paper in self.tests)
        seconds = round(time.process_time() - begin)
        return {"products": PRODUCTS, "parameters": size, "cpu_seconds": seconds, "scores": scores}

    def rule(self, of_paper: bool) -> dict[str, Any]:
        """The frequencies, with `of_paper` mixed with the paper's own words in the best share for training papers."""

        def nats(papers: Sequence[Masked], share: float) -> Iterator[tuple[Masked, Tensor]]:
            for paper in papers:
                own = torch.tensor([float(paper.shown[piece]) for piece in paper.targets.tolist()])
                own /= max(1, paper.shown.total())
                yield paper, -((1 - share) * self.frequencies[paper.targets] + share * own).log()

        def loss(share: float) -> float:
            return float(torch.cat([values for _, values in nats(self.train, share)]).mean())

        share = min((number / 20 for number in range(20)), key=loss) if of_paper else 0.0
        return {"share": share, "scores": scores_of(nats(self.tests, share))}


def main() -> None:
    logging.disable(logging.WARNING)
    parser = flags(RESULTS / "copied_words.csv.gz")
    parser.add_argument("data", type=Path, help="folder bin of hat preprocess studies/paper_roles.py")
    parser.add_argument("checkpoint", type=Path, help="MiniLM, from hat import")
    parser.add_argument("--size", choices=SIZES, required=True)
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--minutes", type=float, default=float("inf"), help="no arm begins that would end later")
    parser.add_argument("--cache", type=Path, default=Path("cache/copied_words"), help="folder of states (some GB)")
    args = parser.parse_args()
    for path in (args.data / "train.ids", args.checkpoint):
        if not path.is_file():
            parser.error(f"{path} is missing: the text of --help says which commands make it")
    torch.set_num_threads(1)
    end = time.monotonic() + 60 * args.minutes
    data = Data(TASKS["roles"](), args.data, args.checkpoint, args.cache / args.size)
    study, task = cache(partial(Study, data, SIZES[args.size])), f"copying, {args.size}"
    runs: dict[Key, Callable[[], dict[str, Any]]] = {}
    for seed in args.seeds:
        runs |= {(task, "rules", name, seed): lambda s=seed, own=own: study(s).rule(own) for name, own in RULES.items()}
        runs |= {(task, "upper", name, seed): lambda s=seed, name=name: study(s).run(name) for name in args.arms}
    add_missing(args.out, runs, end, record_of)


if __name__ == "__main__":
    main()
