"""Measure the duration of recall: default policy, hybrid, from a durable store, embedding of the question included.

    python benchmarks/recall.py --json [--sizes 1000,10000,100000] [--without-peers] [--store postgres [--url URL]]

The texts are synthetic: words with the frequencies of a language, in conversations of two with episodes of twenty
turns. Other libraries use the same embedder; their `recall_at_10` is the share of the ten nearest vectors that they
return, ours the share of the ten that scoring every record in full would return. `--store postgres` also measures a
PostgreSQL database (a server from `mindstream[test-postgres]`, or one at a URL with a superuser role), and reports
whether both stores returned the same texts with exactly the same scores.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import importlib.util
import json
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np
from babble import Babble
from numpy.typing import NDArray
from postgres_place import empty_database, serving

from mindstream.clock import ManualClock
from mindstream.memory.memory import Memory
from mindstream.memory.opening import open_store
from mindstream.memory.store import vectors as vectors_of_stream
from mindstream.memory.store.record import RecordDraft
from mindstream.memory.store.store import Store
from mindstream.models.embedders.embedder import WordLlama
from mindstream.models.embedders.embedder import vectors as embedded

ASKED, WARM, K, NOW = 200, 20, 10, 1_700_000_000.0
SETTLED = 20
PATIENCE_S = 20.0
"""Maximum seconds to measure another library; it gets at least five questions."""


def percentiles(took_s: Sequence[float]) -> dict[str, float]:
    """Return the median and the 95th percentile in milliseconds."""
    p50, p95 = np.percentile(np.array(took_s) * 1000, [50, 95])
    return {"p50_ms": round(float(p50), 3), "p95_ms": round(float(p95), 3)}


async def filled(place: str, texts: Sequence[str]) -> tuple[Store, Memory]:
    """Write the texts to a stream in a store on disk."""
    store = open_store(place)
    stream = Memory(store, "benchmark", WordLlama(), ManualClock(NOW))
    for start in range(0, len(texts), 1000):
        await stream.retain_all(
            [
                RecordDraft(text=text, kind="chat", by=("Ann", "Bob")[i % 2], episode=f"{i // 20}")
                for i, text in enumerate(texts[start : start + 1000], start)
            ]
        )
    return store, stream


async def ours(place: str, texts: Sequence[str], questions: Sequence[str]) -> tuple[dict[str, float], list[Answer]]:
    """Measure recall from a stream; return the times and the answers."""
    store, stream = await filled(place, texts)
    start = time.perf_counter()
    await stream.recall(questions[0], touch=False)
    opened_s, took, returned, answers = time.perf_counter() - start, [], [], []
    await stream.columns()  # load all columns: the first recall of a long stream uses candidates
    for number, question in enumerate(questions, 1):
        start = time.perf_counter()
        found = await stream.recall(question, K)
        took.append(time.perf_counter() - start)
        if number % SETTLED == 0:  # write the touches of the recalled records, which the next recall reads
            await stream.settle()
        returned.append({each.record.id for each in found})
        answers.append([(each.record.text, each.score) for each in found])
    vectors_of_stream.EXACT_UP_TO = stream._recaller.scanned = len(texts) + 1
    full = [{each.record.id for each in await stream.recall(question, K)} for question in questions]
    vectors_of_stream.EXACT_UP_TO = EXACT_UP_TO
    await stream.close()
    await store.close()
    same = np.mean([len(one & other) / len(other) for one, other in zip(returned, full, strict=True)])
    figures = percentiles(took[WARM:]) | {"recall_at_10": round(float(same), 4), "first_ms": round(opened_s * 1000, 1)}
    return figures, answers


async def both(admin: str, texts: Sequence[str], questions: Sequence[str]) -> dict[str, Any]:
    """Measure SQLite, and PostgreSQL if a server is available."""
    with tempfile.TemporaryDirectory() as folder:
        figures, answers = await ours(folder, texts, questions)
    if not admin:
        return figures
    there, found = await ours(empty_database(admin), texts, questions)
    return figures | {"postgres": there | {"same_as_sqlite": found == answers}}


Answer = list[tuple[str, float]]
EXACT_UP_TO = vectors_of_stream.EXACT_UP_TO
Ask = Callable[[str], Awaitable[list[int]]]
"""A question to the numbers of the ten texts that a library finds."""


async def authors_scan(_: Sequence[str], matrix: NDArray[np.float32]) -> Ask:
    """Recall as in the authors' code of Generative Agents: a loop over all memories, each part min-max normalised."""
    memories = [(vector, 0.99 ** (i % 100), 1 + i % 10) for i, vector in enumerate(matrix)]

    def spread(values: dict[int, float]) -> dict[int, float]:
        low, high = min(values.values()), max(values.values())
        return {key: (value - low) / ((high - low) or 1) for key, value in values.items()}

    async def ask(question: str) -> list[int]:
        asked = embedded([question])[0]
        recency, importance, relevance = {}, {}, {}
        for i, (vector, recent, important) in enumerate(memories):
            recency[i], importance[i] = recent, float(important)
            relevance[i] = float(np.dot(vector, asked) / (np.linalg.norm(vector) * np.linalg.norm(asked)))
        recency, importance, relevance = spread(recency), spread(importance), spread(relevance)
        scores = {i: 0.5 * recency[i] + 2 * importance[i] + 3 * relevance[i] for i in recency}
        return sorted(scores, key=lambda i: -scores[i])[:K]

    return ask


async def langgraph_in_memory(texts: Sequence[str], matrix: NDArray[np.float32]) -> Ask:
    """LangGraph's InMemoryStore with vectors."""
    PutOp = importlib.import_module("langgraph.store.base").PutOp  # noqa: N806
    InMemoryStore = importlib.import_module("langgraph.store.memory").InMemoryStore  # noqa: N806

    known = dict(zip(texts, matrix, strict=True))

    def embed(batch: Sequence[str]) -> list[Any]:
        return [known[text] if text in known else embedded([text])[0] for text in batch]

    store = InMemoryStore(index={"dims": matrix.shape[1], "embed": embed, "fields": ["text"]})
    for start in range(0, len(texts), 5000):
        some = enumerate(texts[start : start + 5000], start)
        store.batch([PutOp(("benchmark",), str(i), {"text": text}) for i, text in some])

    async def ask(question: str) -> list[int]:
        return [int(item.key) for item in store.search(("benchmark",), query=question, limit=K)]

    return ask


async def chroma(texts: Sequence[str], matrix: NDArray[np.float32]) -> Ask:
    """Chroma in this process, with its defaults except for cosine."""
    chromadb = importlib.import_module("chromadb")
    client = chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))
    collection = client.create_collection(f"benchmark{len(texts)}", metadata={"hnsw:space": "cosine"})
    for start in range(0, len(texts), 5000):
        rows = range(start, min(start + 5000, len(texts)))
        some = slice(rows.start, rows.stop)
        collection.add(ids=[str(i) for i in rows], embeddings=matrix[some], documents=list(texts[some]))

    async def ask(question: str) -> list[int]:
        found = collection.query(query_embeddings=embedded([question]), n_results=K)
        return [int(id_) for id_ in found["ids"][0]]

    return ask


PEERS: dict[str, tuple[str, Callable[[Sequence[str], NDArray[np.float32]], Awaitable[Ask]]]] = {
    "Generative Agents' scan": ("numpy", authors_scan),
    "LangGraph InMemoryStore": ("langgraph.store.memory", langgraph_in_memory),
    "Chroma": ("chromadb", chroma),
}


def installed(module: str) -> bool:
    """Return whether a module can be imported."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


async def peer(ask: Ask, questions: Sequence[str], matrix: NDArray[np.float32], of_vectors: bool) -> dict[str, float]:
    """Measure a library; if it ranks by vectors alone, compare with the exact nearest."""
    took, shares, begun = [], [], time.perf_counter()
    for question in questions:
        start = time.perf_counter()
        found = await ask(question)
        took.append(time.perf_counter() - start)
        near = matrix @ embedded([question])[0]
        shares.append(len(set(found) & set(np.argpartition(-near, K)[:K].tolist())) / K)
        if len(took) >= 5 and time.perf_counter() - begun > PATIENCE_S:
            break
    result = percentiles(took[min(WARM, len(took) // 2) :])
    return result | {"recall_at_10": round(float(np.mean(shares)), 4)} if of_vectors else result


async def run(sizes: Sequence[int], peers: bool, admin: str) -> dict[str, Any]:
    """Measure all sizes."""
    result: dict[str, Any] = {"sizes": {}, "peers": {name: {} for name in PEERS} if peers else {}}
    questions = Babble(2).sentences(ASKED, 4, 9)
    for size in sizes:
        texts = Babble(1).sentences(size)
        result["sizes"][str(size)] = await both(admin, texts, questions)
        matrix = embedded(texts)
        for name, (module, made) in PEERS.items() if peers else ():
            if not installed(module):
                result["peers"][name] = "not installed"
                continue
            asked = await made(texts, matrix)
            result["peers"][name][str(size)] = await peer(asked, questions, matrix, made is not authors_scan)
    return result


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--without-peers", action="store_true")
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--url", default="", help="URL of an existing server to use")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with serving(asked.url) if asked.store == "postgres" else contextlib.nullcontext("") as admin:
        sizes = [int(size) for size in asked.sizes.split(",")]
        result = asyncio.run(run(sizes, not asked.without_peers, admin))
    if asked.json:
        print(json.dumps(result, indent=1))
        return
    for size, found in result["sizes"].items():
        print(f"{'mindstream':26} {size:>8} {found}")
    for name, rows in result["peers"].items():
        for size, found in rows.items() if isinstance(rows, dict) else [("", rows)]:
            print(f"{name:26} {size:>8} {found}")


if __name__ == "__main__":
    main()
