"""The time and the memory of reading a million exported spans of 1.3 kB, as a case: one span in each line of OTLP JSON.

Half of the searches are for frequent texts, the others for texts of their own; each was served three documents.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import orjson

from benchmarks.cases import folder_of_runs
from benchmarks.measure import Figure, spend

SPANS, SECONDS, MEBIBYTES = 1_000_000, 60.0, 1024.0
_WORDS, _DOCUMENTS, _FREQUENT = 5_000, 20_000, 100_000


def reading_traffic() -> list[Figure]:
    """Read a million spans and join them into searches; at most 60 s and 1 GiB."""
    with folder_of_runs() as folder:
        bytes_each = write_spans(folder / "spans.jsonl", SPANS)
        spent = spend([sys.executable, "-m", "benchmarks.traffic", str(folder / "spans.jsonl")], Path.cwd())
    name = f"reading {SPANS:,} spans of {bytes_each:,} bytes"
    return [
        Figure(f"{name}, time against the limit", "s", spent.seconds, SECONDS, 1),
        Figure(f"{name}, memory against the limit", "MiB", spent.mebibytes, MEBIBYTES, 1),
    ]


def write_spans(path: Path, spans: int) -> int:
    """Write spans of retrieval in the attributes of OpenInference; return the mean size of a line in bytes."""
    rng = random.Random(0)
    words = [f"word{number}" for number in range(_WORDS)]
    documents = [(f"kb/{number:05d}", " ".join(rng.choices(words, k=3))) for number in range(_DOCUMENTS)]
    frequent = [" ".join(rng.choices(words, k=6)) for _ in range(_FREQUENT)]
    with path.open("wb") as file:
        for number in range(spans):
            is_frequent = number % 2
            place = min(int(rng.paretovariate(0.7)) - 1, _FREQUENT - 1)
            query = frequent[place] if is_frequent else " ".join(rng.choices(words, k=6))
            content: dict[str, object] = {
                "openinference.span.kind": "RETRIEVER",
                "input.value": query,
                "user.id": f"user-{rng.randrange(50_000)}",
            }
            for rank, (identifier, text) in enumerate(rng.sample(documents, 3)):
                prefix = f"retrieval.documents.{rank}.document"
                content |= {f"{prefix}.id": identifier, f"{prefix}.score": rng.random(), f"{prefix}.content": text}
            start = 1_795_830_778_000_000_000 + number * 10**8
            span = {
                "traceId": f"{rng.getrandbits(128):032x}",
                "spanId": f"{rng.getrandbits(64):016x}",
                "name": "retrieve",
                "startTimeUnixNano": str(start),
                "endTimeUnixNano": str(start + rng.randrange(10**7)),
                "attributes": [
                    {"key": key, "value": {"doubleValue" if isinstance(value, float) else "stringValue": value}}
                    for key, value in content.items()
                ],
                "status": {},
            }
            resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}
            batch = {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [span]}]}]}
            file.write(orjson.dumps(batch, option=orjson.OPT_APPEND_NEWLINE))
    return path.stat().st_size // spans


TRAFFIC = (reading_traffic,)

if __name__ == "__main__":
    from runner.datasets.traffic.queries import group_searches, load_traffic
    from runner.datasets.traffic.spans import ID_RULES

    traffic = load_traffic(sys.argv[1], ID_RULES)
    print(len(traffic.searches), "searches for", len(group_searches(traffic, by_text=True)), "texts")
