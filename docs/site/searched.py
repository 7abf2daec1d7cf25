"""What the search of the built site answers: ``python docs/site/searched.py HTML``."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from snowballstemmer import stemmer

TASKS = {
    "softmax": "softmax",
    "RMS norm": "rms_norm",
    "RMS norm with backward": "rms_norm",
    "GEMM bias GELU": "gemm_bias_gelu",
    "attention with ALiBi": "attention_alibi_window",
    "attention ALiBi window": "attention_alibi_window",
    "W4A16": "w4a16",
    "top-k": "top_k",
    "conv2d NHWC": "conv2d_nhwc",
    "paged decode": "paged_decode",
    "grouped SwiGLU": "grouped_swiglu",
    "cross entropy": "cross_entropy",
    "packed attention": "packed_attention",
    "sample tokens": "sample_tokens",
}
"""What readers look for, and the page of the gallery that they want."""

TITLE, PARTIAL_TITLE, TERM, PARTIAL_TERM, NAME, PARTIAL_NAME = 15, 7, 5, 2, 11, 6
PRIORITY, TASK = {0: 15, 1: 5, 2: -5}, 8
"""Scores of scorer.js, which is what runs in a browser."""


def answers(index: dict[str, Any], query: str) -> list[str]:
    """Return the pages that a query finds, the best first, as Sphinx's script orders them."""
    docs, titles, found = index["docnames"], index["titles"], []
    lower = query.lower()
    for title, places in index["alltitles"].items():
        if lower in title.lower() and len(lower) >= len(title) / 2:
            score = round(TITLE * len(lower) / len(title))
            found += [(score + (titles[file] == title), titles[file], file) for file, _ in places]
    for entry, places in index["indexentries"].items():
        if lower in entry and len(lower) >= len(entry) / 2:
            score = round(100 * len(lower) / len(entry))
            found += [(score, titles[file], file) for file, _, is_main in places if is_main]
    for prefix, members in index["objects"].items():
        for file, _, prio, _, name in members:
            full, last = f"{prefix}.{name}".lower(), name.lower().rpartition(".")[2]
            if all(word in f"{full} {titles[file]}".lower() for word in lower.split()):
                score = NAME if lower == last else PARTIAL_NAME if lower in last else 0
                found.append((score + PRIORITY.get(prio, 0), name, file))
    found += [(score, titles[file], file) for file, score in _by_words(index, lower).items()]
    weighed = [
        (-score - TASK * docs[file].startswith("gallery/tasks/"), title.lower(), docs[file])
        for score, title, file in found
    ]
    return [page for _, _, page in sorted(weighed)]


def _by_words(index: dict[str, Any], query: str) -> dict[int, int]:
    """Return the pages that have all words, with the best score of one of them."""
    stem, best = stemmer("porter").stemWord, {}
    words = {stem(word) for word in re.findall(r"\w+", query)} - {"with"}
    for word in words:
        for table, whole, part in (
            ("terms", TERM, PARTIAL_TERM),
            ("titleterms", TITLE, PARTIAL_TITLE),
        ):
            known = index[table]
            hits = [word] if word in known else [t for t in known if len(word) > 2 and word in t]
            for term in hits:
                files = known[term]
                for file in files if isinstance(files, list) else [files]:
                    best.setdefault(file, {})[word] = whole if word in known else part
    enough = {len(words), len([word for word in words if len(word) > 2])}
    return {file: max(scores.values()) for file, scores in best.items() if len(scores) in enough}


def main(html: Path) -> int:
    """Tell which tasks are not found first."""
    text = (html / "searchindex.js").read_text()
    index = json.loads(text[text.index("(") + 1 : text.rindex(")")])
    wrong = 0
    for query, page in TASKS.items():
        first = [*answers(index, query), "nothing"][0]
        if first != f"gallery/tasks/{page}":
            wrong += 1
            sys.stdout.write(f"{query!r} finds {first} first\n")
    sys.stdout.write(f"{len(TASKS) - wrong} of {len(TASKS)} tasks are found first\n")
    return wrong


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
