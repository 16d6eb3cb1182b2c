"""What comes of the blocks of a table: their borders repaired, and all of them joined."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.actions.distribution.tasks import ImproveBorder
from dbanon.domain.errors import DbanonError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from dbanon.actions.distribution.results import Run
    from dbanon.actions.distribution.tasks import Grouped, Job
    from dbanon.anonymization.interfaces import Requirement
    from dbanon.anonymization.outcome import Outcome
    from dbanon.anonymization.regions.cutting import Region
    from dbanon.anonymization.regions.domains import Domains, Values
    from dbanon.anonymization.regions.grouping import Groups
    from dbanon.db.transfer import SourceRows
    from dbanon.domain.progress import Stages

    Blocks = list[tuple[Region, Grouped]]
    Moved = list[tuple[NDArray[np.int64], Groups]]


def repaired(blocks: Blocks, root: Region, run: Run, *, most: int, stages: Stages) -> Moved:
    """Improve the costliest groups of neighbouring blocks together; return what loses less.

    Those of as many blocks at once as have no more than ``most`` of them.
    """
    ends = np.cumsum([grouped.keys.num_rows for _, grouped in blocks])
    first = dict(zip((region for region, _ in blocks), [0, *ends.tolist()], strict=False))
    grouped_by = dict(blocks)
    tasks, rows = [], []
    for regions in _neighbours(root, [region for region, _ in blocks], grouped_by, most=most):
        borders = [grouped_by[region].border for region in regions]
        rows.append(
            np.concatenate([b.rows + first[r] for r, b in zip(regions, borders, strict=True)])
        )
        counts = [0, *np.cumsum([len(grouped_by[region].groups.lo) for region in regions])]
        tasks.append(
            ImproveBorder(
                np.concatenate([border.codes for border in borders]),
                np.concatenate([border.sensitive for border in borders]),
                np.concatenate(
                    [b.group + np.int32(at) for b, at in zip(borders, counts, strict=False)]
                ),
            )
        )
    found: dict[int, Groups] = {}
    for number, result in run(tasks):
        if isinstance(result, DbanonError):
            raise result
        if result is not None:
            found[number] = result  # type: ignore[assignment] # of such a task
    stages.remark(f"borders: {sum(len(rows[i]) for i in found):,} rows looked at again")
    return [(rows[number], found[number]) for number in sorted(found)]


def _neighbours(
    region: Region,
    regions: Sequence[Region],
    grouped: dict[Region, Grouped],
    *,
    most: int,
) -> Iterator[list[Region]]:
    """Yield the blocks below the highest regions with few enough rows at their borders."""
    below = [one for one in regions if one is region or region.parent_of(one) is not None]
    sizes = [len(grouped[one].border.rows) for one in below]
    if len(below) < 2 or not sum(sizes):  # noqa: PLR2004 - there is a border between two
        return
    if sum(sizes) <= most:
        yield below
        return
    for part in region.parts:
        yield from _neighbours(part, below, grouped, most=most)


def joined(
    job: Job, blocks: Blocks, moved: Moved, requirement: Requirement
) -> tuple[Outcome, SourceRows]:
    """Return all rows, block by block, and their groups; requirement: of all of them."""
    import pyarrow as pa

    from dbanon.anonymization.regions.joining import join
    from dbanon.db.transfer import SourceRows

    domains = job.domains
    keys = pa.concat_tables([grouped.keys for _, grouped in blocks])
    places = np.concatenate([grouped.places for _, grouped in blocks])
    sensitive = np.empty_like(places)
    columns = keys.select([])
    for i, name in enumerate(domains.sensitive_names):
        values = domains.values[name]
        sensitive[:, i] = values.codes[places[:, i]]
        columns = columns.append_column(name, _texts(values, places[:, i]))
    parts = [grouped.groups for _, grouped in blocks]
    outcome = join(parts, moved, domains, sensitive, policy=job.policy, requirement=requirement)
    return outcome, SourceRows(keys, columns)


def counted_texts(domains: Domains) -> pa.Table:
    """Return the sensitive columns of all rows, each in an order of its own."""
    import pyarrow as pa

    known = [domains.values[name] for name in domains.sensitive_names]
    places = [np.repeat(np.arange(len(v.rows), dtype=np.int32), v.rows) for v in known]
    texts = [pa.chunked_array([_texts(v, at)]) for v, at in zip(known, places, strict=True)]
    return pa.table(texts, names=list(domains.sensitive_names))


def _texts(values: Values, places: NDArray[np.int32]) -> pa.DictionaryArray:
    import pyarrow as pa

    index = pa.array(places, mask=places == len(values.distinct))
    return pa.DictionaryArray.from_arrays(index, values.distinct)
