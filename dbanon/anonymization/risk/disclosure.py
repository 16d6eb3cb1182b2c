"""What classes say of sensitive values beyond what the whole relation says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.domain.report import Disclosure
from dbanon.models.closeness.distances import distance_from
from dbanon.models.parameters import EQUAL
from dbanon.models.tally import Whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymization.released.cells import Released, SensitiveCounts
    from dbanon.domain.assignment import SensitiveDomain
    from dbanon.models.tally import Tally

DELTA = EPSILON = 0.1
"""A value is believed with more than 1 - delta, and ruled out with less than epsilon."""


def posterior(
    counts: NDArray[np.int64],
    among_known: NDArray[np.float64],
    among_class: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return what somebody believes of a person's sensitive value who sees the person's class.

    Bayes-optimal (Machanavajjhala et al., TKDD 2007, theorem 3.1). counts: (m,) how often each
    value is in the class; among_known: (m,) its share among persons whose quasi-identifiers are
    those that the attacker knows, among_class: among all that the class stands for. A value that
    the class cannot have (0 among it) has no say.
    """
    weight = np.zeros(len(counts))
    some = (np.asarray(among_class) > 0.0) & (np.asarray(counts) > 0)
    weight[some] = (counts * among_known)[some] / np.asarray(among_class)[some]
    total = weight.sum()
    return weight / total if total > 0.0 else weight


def disclosures(released: Released) -> tuple[Disclosure, ...]:
    """Return what the classes say of each sensitive column that is published as it is.

    Prior is the distribution in the whole relation, posterior that in the class, as for an attacker
    to whom quasi-identifiers say nothing.
    """
    if not released.n_classes:
        return ()
    domains = dict(zip(released.table.sensitive_names, released.table.domains, strict=True))
    return tuple(_disclosure(one, domains[one.name]) for one in released.sensitive)


def _disclosure(counted: SensitiveCounts, domain: SensitiveDomain) -> Disclosure:
    tally = counted.tally
    n_rows = int(tally.size.sum())
    total = np.zeros(counted.n_codes, np.int64)
    np.add.at(total, tally.values, tally.counts)
    prior, after = total / n_rows, tally.shares()
    before = prior[tally.values]
    whole = Whole(prior, n_rows, domain)
    entropy = -tally.total(after * np.log(after))
    believed = (after > 1.0 - DELTA) & (before <= 1.0 - DELTA)
    return Disclosure(
        column=counted.name,
        values=int((total > 0).sum()),
        highest=float(after.max()),
        lift=float((after / before).max()),
        guessed=float(tally.most(tally.counts.astype(np.float64)).sum() / n_rows),
        baseline=float(prior.max()),
        positive=float(tally.counts[believed].sum() / n_rows),
        negative=float(tally.size[_ruled_out(tally, prior)].sum() / n_rows),
        diversity=float(np.exp(entropy.min())),
        closeness=float(distance_from(tally, whole, prior, distance=EQUAL).max()),
    )


def _ruled_out(tally: Tally, prior: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return the classes in which a value is rare, or not at all, that was not so before."""
    possible = prior >= EPSILON
    kept = possible[tally.values] & (tally.shares() >= EPSILON)
    n_kept = np.bincount(tally.classes[kept], minlength=tally.n_classes)
    return np.asarray(n_kept < possible.sum())
