"""The use of a release: all of it, one part after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    from dbanon.domain.report import Association, Classification, QueryError


def utility_of(
    released: Released,
    policy: Policy,
    *,
    generator: np.random.Generator,
    samples: int,
    stages: Stages,
) -> Utility:
    """Return what a release is worth to its readers.

    samples: the most rows of the source that classifiers learn from and are tested on, all else is
    counted in all rows. What has not begun when somebody asks to stop is left out.
    """
    if not released.table.n_rows or not released.n_classes:
        return Utility()
    with stages("utility"):
        readings = readings_of(released)
        columns = [(reading, bins_of(reading)) for reading in readings]
        compared = (distribution(reading, bins) for reading, bins in columns if bins is not None)
        distributions = tuple(each for each in compared if len(each.bins) > 1)
        associations: tuple[Association, ...] = ()
        if len(columns) > 1 and not stages.stopped:
            associations = (association(columns),)
    queries: tuple[QueryError, ...] = ()
    if not stages.stopped:
        with stages("queries"):
            drawn = policy.sample is not None
            queries = query_errors(readings, generator=generator, scaled=drawn)
    learned: tuple[Classification, ...] = ()
    if not stages.stopped:
        with stages("classifiers"):
            learned = classifications(
                released, readings, policy=policy, generator=generator, samples=samples
            )
    return Utility(distributions, associations, queries, learned)
