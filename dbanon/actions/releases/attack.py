"""Simulate attacks on a served release, using its source table in its present state."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from dbanon.actions.releases.released_data import Reconciliation, reconcile, served
from dbanon.anonymization.attacks.pair import Shown
from dbanon.anonymization.attacks.pair import attack_both as try_both
from dbanon.anonymization.attacks.registry import BY, Attacked
from dbanon.anonymization.attacks.registry import attack as try_one
from dbanon.db.histories import memory
from dbanon.db.metadata.migrate import current_session
from dbanon.domain.errors import ConfigError
from dbanon.domain.outcomes import Stages
from dbanon.domain.report import CONFIDENTIAL, SAMPLES, Attack, Attacker
from dbanon.domain.text import command, visible
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from dbanon.domain.release import Release
    from dbanon.domain.table import TableName


@dataclass(frozen=True, slots=True)
class Attempt:
    """Success counts of attacks on a relation; exact, and without names.

    attacker: None with two relations; other, other_release: the second of these; samples, seed: the
    maximum number of attacked persons, and their choice; not_tried: reasons by name of attack.
    """

    relation: TableName
    release: int
    table: TableName
    attacker: Attacker | None
    attacks: tuple[Attack, ...]
    not_tried: Mapping[str, str]
    samples: int
    seed: int
    other: TableName | None = None
    other_release: int | None = None
    confidential: str = CONFIDENTIAL


def attack(
    relation: str | TableName,
    *,
    attacker: Attacker | str = Attacker.PROSECUTOR,
    samples: int = SAMPLES,
    seed: int = 0,
    time_limit: float | None = None,
    settings: Settings | None = None,
    stages: Stages | None = None,
) -> Attempt:
    """Simulate an attacker on persons of the table, and count correct results.

    samples: number of persons, drawn by ``seed``; time_limit: seconds after which no further attack
    starts. Writes nothing. Needs SELECT on the table and on the metadata, like the role that
    publishes. Raises ConfigError if the relation serves no release, or one by anatomy; DriftError
    if the table is missing or no longer fits the release; NotPermitted, TableNotFound.
    """
    stages, until = stages or Stages(), _until(time_limit)
    settings, attacker = settings or Settings.load(), _attacker(attacker, relation)
    _require_positive(samples)
    (seen,) = reconcile([served(relation, settings)], settings, stages)
    with stages("attack"):
        found = try_one(
            seen.released,
            seen.policy,
            names=BY[attacker],
            samples=samples,
            seed=seed,
            stages=stages,
            until=until,
        )
    return _attempt(seen, found, samples=samples, seed=seed, attacker=attacker)


def attack_both(
    relation: str | TableName,
    other: str | TableName,
    *,
    samples: int = SAMPLES,
    seed: int = 0,
    time_limit: float | None = None,
    settings: Settings | None = None,
    stages: Stages | None = None,
) -> Attempt:
    """Simulate an attacker with two relations of the same table; otherwise like ``attack``.

    Raises ConfigError for relations of different tables.
    """
    stages, until = stages or Stages(), _until(time_limit)
    settings = settings or Settings.load()
    _require_positive(samples)
    releases = [served(one, settings) for one in (relation, other)]
    _require_same_table(*releases)
    first, second = reconcile(releases, settings, stages)
    if first.keys.schema != second.keys.schema:
        raise ConfigError(
            f"{first.release.relation} and {second.release.relation} tell the rows of their table"
            " apart by different keys",
            hint="the same key in both policies",
        )
    is_judged = _is_judged(releases[0], releases[1], settings)
    rows = _same_rows(first.keys, second.keys)
    with stages("attack"):
        found = try_both(
            Shown(first.released, first.policy, rows[0]),
            Shown(second.released, second.policy, rows[1]),
            is_judged=is_judged,
            samples=samples,
            seed=seed,
            stages=stages,
            until=until,
        )
    return _attempt(first, found, samples=samples, seed=seed, second=second)


def _attempt(
    seen: Reconciliation,
    found: Attacked,
    *,
    samples: int,
    seed: int,
    attacker: Attacker | None = None,
    second: Reconciliation | None = None,
) -> Attempt:
    release = seen.release
    return Attempt(
        relation=release.relation,
        release=release.id,
        table=release.table,
        attacker=attacker,
        attacks=found.attacks,
        not_tried=found.not_tried,
        samples=samples,
        seed=seed,
        other=None if second is None else second.release.relation,
        other_release=None if second is None else second.release.id,
    )


def _until(time_limit: float | None) -> float | None:
    return None if time_limit is None else monotonic() + time_limit


def _attacker(name: Attacker | str, relation: str | TableName) -> Attacker:
    try:
        return Attacker(name)
    except ValueError:
        msg = f"there is no attacker {visible(name)}, but {', '.join(Attacker)}"
        hint = command("dbanon attack", relation, options=f"--as {Attacker.PROSECUTOR}")
        raise ConfigError(msg, hint=hint) from None


def _require_positive(samples: int) -> None:
    if samples < 1:
        raise ConfigError("attacks are tried on one person at least", hint="--samples 10000")


def _require_same_table(first: Release, second: Release) -> None:
    if first.relation == second.relation:
        raise ConfigError(
            f"{first.relation} is one relation, and two are compared",
            hint="dbanon release list names others",
        )
    if first.table != second.table:
        raise ConfigError(
            f"{first.relation} is of {first.table}, and {second.relation} of {second.table}",
            hint="dbanon release list names the table of each",
        )


def _is_judged(first: Release, second: Release, settings: Settings) -> bool:
    """Return True if the later release was compared with the other before it was published."""
    if first.kind.is_live or second.kind.is_live or first.dataset or second.dataset:
        return False
    with current_session(settings) as session:
        known = memory.of_series(session, first.table, first.relation)
    return first.id in known.relations and second.id in known.relations


def _same_rows(first: pa.Table, second: pa.Table) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows with equal keys in two tables, in the same order."""
    size = first.num_rows
    keys = np.zeros(size + second.num_rows, np.int64)
    for one, other in zip(first.columns, second.columns, strict=True):
        values = pa.chunked_array([*one.chunks, *other.chunks], one.type).combine_chunks()
        codes = values.dictionary_encode().indices.to_numpy()
        keys = np.unique(keys * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1]
    _, mine, others = np.intersect1d(keys[:size], keys[size:], return_indices=True)
    return mine.astype(np.int64), others.astype(np.int64)
