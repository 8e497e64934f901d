"""A reader of QMSum: ten turns are a paragraph, and those that answer a question are its annotations."""

import json

from hat_fairseq.data.kinds import Annotation, DocumentQuestion

KIND = "document_qa"
FOLDERS = {"train": "train", "valid": "val", "test": "test"}
TURNS = 10  # of a paragraph


def read(split, root, counts):
    for path in sorted((root / FOLDERS[split]).glob("*.json")):
        meeting = json.loads(path.read_text(encoding="utf-8"))
        turns = [f"{turn['speaker']} : {turn['content']}" for turn in meeting["meeting_transcripts"]]
        paragraphs = tuple(" ".join(turns[first : first + TURNS]) for first in range(0, len(turns), TURNS))
        for number, query in enumerate(meeting["specific_query_list"]):
            spans = [(int(first), int(last)) for first, last in query["relevant_text_span"]]
            answers = sorted({n for first, last in spans for n in range(first // TURNS, last // TURNS + 1)})
            yield DocumentQuestion(
                id=f"{path.stem}-{number}",
                question=query["query"],
                paragraphs=paragraphs,
                annotations=tuple(Annotation(paragraph=n) for n in answers),
                meta={"answer": query["answer"]},
            )
