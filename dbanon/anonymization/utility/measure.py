"""The use of a release: all of it, one part after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.anonymization.released.held import FEW
from dbanon.anonymization.released.small_counts import least_rows
from dbanon.anonymization.utility.associations import association
from dbanon.anonymization.utility.classifications import classifications
from dbanon.anonymization.utility.distributions import bins_of, distribution
from dbanon.anonymization.utility.queries import query_errors
from dbanon.anonymization.utility.readings import readings_of
from dbanon.domain.report import Utility

if TYPE_CHECKING:
    import numpy as np

    from dbanon.anonymization.released.cells import Released
    from dbanon.domain.policy import Policy
    from dbanon.domain.progress import Stages
    from dbanon.domain.report import Association, Classification, Distribution, QueryError


def utility_of(
    released: Released,
    policy: Policy,
    *,
    generator: np.random.Generator,
    samples: int,
    stages: Stages,
    told: bool = True,
) -> Utility:
    """Return what a release is worth to its readers.

    samples: the most rows of the source that classifiers learn from and are tested on, all else is
    counted in all rows; told: whether anything of the source may be. What has not begun when
    somebody asks to stop is left out.
    """
    if not released.table.n_rows or not released.n_classes:
        return Utility()
    with stages("utility"):
        readings, least = readings_of(released), least_rows(released, policy)
        columns = [(reading, bins_of(reading)) for reading in readings]
        several = len(columns) > 1
        shown = ((reading, bins) for reading, bins in columns if told and bins is not None)
        compared = (distribution(*column, least=least) for column in shown)
        distributions = tuple(each for each in compared if _tells(each))
        associations: tuple[Association, ...] = ()
        if several and not stages.stopped:
            associations = (association(columns, least=least, told=told),)
    if not told:
        return Utility(associations=associations, not_told=FEW)
    queries: tuple[QueryError, ...] = ()
    if not stages.stopped:
        with stages("queries"):
            drawn = policy.sample is not None
            queries = query_errors(readings, least=least, generator=generator, scaled=drawn)
    learned: tuple[Classification, ...] = ()
    if not stages.stopped:
        with stages("classifiers"):
            how_many = {"samples": samples, "least": least}
            learned = classifications(
                released, readings, policy=policy, generator=generator, **how_many
            )
    return Utility(distributions, associations, queries, learned)


def _tells(found: Distribution) -> bool:
    """Return whether there are two bins, and a count of the source that may be told."""
    return len(found.bins) > 1 and any(share is not None for share in found.source)
