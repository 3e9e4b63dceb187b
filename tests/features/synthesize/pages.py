"""Chunks about an invented harbour that is run by software, with all that pages have beside prose."""

from __future__ import annotations

from runner.features.synthesize.base import Bundle, Chunks, Request

QUAY = """---
title: "Mooring Scheduler"
weight: 30
secret_marker: frontmatterword
---

<!-- overview commentword -->

The **Mooring Scheduler** assigns a berth to every [vessel](/docs/vessel) that asks for one.
It was introduced in version 2.4 and keeps at most 128 pending requests for each quay.

## Tide windows {#tide}

A tide window is the span of hours in which a deep vessel can reach its berth safely.
The scheduler computes each window from the `TideTable` resource, so that pilots need no almanac.

```yaml
kind: fencedword
replicas: 3
```

| Column | tableword |
|--------|-----------|
| berth  | 7         |

{{< note shortcodeword >}}

- Remove expired windows with the harbourctl command before the season begins.
- Pilots {{< term "confirm arrivals" >}} twice, because storms change the plan.

<div class="htmlword">
"""

CUSTOMS = """## Customs declarations

A declaration lists the cargo of a ship and the duty that its owner has to pay within thirty days.
Officers inspect one container in every 40, chosen by the RiskEngine service from earlier findings.
A ship without a declaration waits at the outer anchorage until an officer has come on board.
"""

FERRIES = """## Ferry timetable

Ferries leave the northern pier every hour and carry bicycles without any charge on weekdays.
In winter the last crossing is at 18:30, and passengers should be at the gate ten minutes earlier.
"""

LIGHTS = """## Lighthouse maintenance

The keeper replaces the lamp of the lighthouse every 900 hours and writes this down in the journal.
A spare lamp is stored in the tower; the foghorn is tested on the first Monday of each month.
The lamp is visible from twenty sea miles.
"""

TEXTS = (QUAY, CUSTOMS, FERRIES, LIGHTS)


def harbour_chunks() -> Chunks:
    return Chunks(
        doc_ids=["ops_mooring-scheduler", "ops_customs-office", "town_ferry-times", "town_light-house"],
        chunk_ids=["0", "0", "0", "0"],
        texts=TEXTS,
        titles=["Mooring Scheduler", "Customs", "Ferries", "Lighthouse"],
    )


def create_request(query_type: str, seed: int = 0, goldens: tuple[int, ...] = (0,)) -> Request:
    return Request(Bundle(goldens, tuple(at for at in range(len(TEXTS)) if at not in goldens)[:3]), query_type, seed)
