"""Papers with the organisms that they study, for classification: a reader of SumPubmed in the fields of Cohan et al.

The label is weak: it is read off the abstract by the short lists of words below, and nobody has checked it. It is the
group that the abstract names at least twice as often as any other. Papers without such a group are left out, and
counted. The text is the body without its abstract and titles; it names the organisms too, often in its first sentences.

    hat preprocess studies/paper_organisms.py --root PUBMED --out data-bin/papers --bpe tokenizer --bpe-dir minilm \\
        --max-source-tokens 4096 --long-source truncate
"""

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import record_from_json

KIND = "classification"
DEFAULTS = {"splitter": "given", "segments": "sentences"}
FILES = {"train": "train", "valid": "val", "test": "test"}
SHORTEST = 1500  # words
GROUPS = {
    "human": "human humans patient patients women men children participants individuals volunteers people clinical",
    "animal": "mouse mice murine rat rats rodent rodents zebrafish fish fishes chicken chickens bird birds pig pigs"
    " porcine cattle bovine cow cows sheep dog dogs canine horse horses xenopus drosophila elegans insect insects"
    " mosquito mosquitoes nematode nematodes bee bees beetle beetles ant ants animal animals mammal mammals mammalian"
    " vertebrate vertebrates frog frogs lizard lizards salmon anopheles aedes",
    "plant": "plant plants arabidopsis rice maize wheat barley tomato soybean potato cotton grape grapevine seed seeds"
    " leaf leaves poplar sorghum brassica seedlings flowering crop crops",
    "microbe": "bacteria bacterial bacterium bacteriophage yeast fungal fungus fungi escherichia coli microbial"
    " microbes virus viruses viral saccharomyces pathogen pathogens pathogenic streptomyces salmonella mycobacterium"
    " plasmodium archaea strain strains prokaryotic prokaryotes",
}
PATTERNS = {name: re.compile(rf"\b({'|'.join(words.split())})\b", re.IGNORECASE) for name, words in GROUPS.items()}


def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[Record]:
    """Yield the papers of at least `SHORTEST` words with one group of organisms."""
    assert root is not None, "--root is missing"
    with gzip.open(root / f"{FILES[split]}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for paper in map(json.loads, lines):
            segments = [text for section in paper["sections"] for text in section if text.strip()]
            if sum(len(text.split()) for text in segments) < SHORTEST:
                counts["papers_too_short"] += 1
            elif label := group_of(" ".join(paper["abstract_text"])):
                record = {"id": paper["article_id"], "segments": segments, "label": label}
                yield record_from_json(record, f"{split}: {paper['article_id']}", KIND)
            else:
                counts["papers_without_one_group"] += 1


def group_of(abstract: str) -> str | None:
    """The group named at least twice as often as any other, None if there is none."""
    numbers = sorted((len(pattern.findall(abstract)), name) for name, pattern in PATTERNS.items())
    (second, _), (most, name) = numbers[-2:]
    return name if most >= max(1, 2 * second) else None
