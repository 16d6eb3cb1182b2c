"""What a publication risks and what it is worth, once it is known what readers see of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING

from dbanon.domain.policy import Role
from dbanon.domain.wording import method_in_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dbanon.anonymization.released.cells import Released
    from dbanon.anonymization.risk.judge import Everybody
    from dbanon.domain.policy import Policy
    from dbanon.domain.progress import Stages
    from dbanon.domain.report import Risk, Utility

SAMPLES, THRESHOLD = 10_000, 0.2
_OF_TWO = "a second relation is needed: dbanon attack RELATION --with OTHER"


@dataclass(frozen=True, slots=True)
class Judged:
    """Risk and utility; left_out: for want of time.

    sampled: how many rows of the source were looked at, None where all were.
    """

    risk: Risk
    utility: Utility
    sampled: int | None
    left_out: tuple[str, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Bench:
    """What is judged, and by how much of it: ``until`` by the monotonic clock."""

    released: Released
    policy: Policy
    stages: Stages
    samples: int = SAMPLES
    seed: int = 0
    until: float | None = None

    @property
    def recoded(self) -> Policy:
        """The policy with the recoding that each quasi-identifier is published by."""
        from dbanon.anonymization.released.reading import recoding_of

        shown = {column.name for column in self.released.columns}
        quasi = (column for column in self.released.table.quasi if column.name in shown)
        recodings = {column.name: recoding_of(column) for column in quasi}
        columns = self.policy.columns
        rules = (replace(r, recoding=recodings.get(r.column, r.recoding)) for r in columns)
        return replace(self.policy, columns=tuple(rules))

    @property
    def is_late(self) -> bool:
        """Whether nothing else is to begin."""
        return self.stages.stopped or (self.until is not None and monotonic() > self.until)

    @property
    def rows(self) -> NDArray[np.int64]:
        """The rows of the source that are looked at, all or a sample, in order."""
        import numpy as np

        n_rows = self.released.table.n_rows
        if n_rows <= self.samples:
            return np.arange(n_rows)
        drawn = np.random.default_rng(self.seed).choice(n_rows, self.samples, replace=False)
        return np.sort(drawn)


def judged(
    bench: Bench,
    everybody: Everybody,
    *,
    threshold: float = THRESHOLD,
    sizes: NDArray[np.int64] | None = None,
    achieved: float | None = None,
) -> Judged:
    """Return risk and utility; a part for which there is no time is left out, and named.

    everybody, threshold, sizes, achieved: as ``risk.judge`` has them.
    """
    from dbanon.anonymization.risk import judge
    from dbanon.domain.report import Utility

    released, left_out = bench.released, []
    with bench.stages("risk"):
        risk = judge.risk(released, everybody, threshold=threshold, sizes=sizes, achieved=achieved)
        unique = judge.unique_in(released, everybody)
    risk = replace(risk, uniqueness=unique, not_judged=masked(bench.policy))
    rows = bench.rows
    if bench.is_late:
        left_out.append("unique sets")
    else:
        with bench.stages("unique sets"):
            risk = replace(risk, unique_sets=judge.sets_of(released, rows))
    if bench.is_late:
        left_out.append("attacks")
    else:
        risk, late = _attacked(bench, risk)
        left_out += late
    utility = Utility()
    if bench.is_late:
        left_out.append("utility")
    else:
        utility = _used(bench)
    sampled = len(rows) if len(rows) < released.table.n_rows else None
    return Judged(risk, utility, sampled, tuple(left_out))


def masked(policy: Policy) -> dict[str, str]:
    """Return the sensitive columns of which readers do not see what is true, and how."""
    columns = [rule.column for rule in policy.with_role(Role.SENSITIVE)]
    steps = {column: policy.masked(column) for column in columns}
    return {
        column: " and ".join(map(method_in_words, masking))
        for column, masking in steps.items()
        if masking
    }


def _attacked(bench: Bench, risk: Risk) -> tuple[Risk, list[str]]:
    """Return the risk with attacks, and those for which there was no time."""
    from dbanon.anonymization.attacks.registry import LATE, attack

    with bench.stages("attacks"):
        found = attack(
            bench.released,
            bench.policy,
            samples=bench.samples,
            seed=bench.seed,
            stages=bench.stages,
            until=bench.until,
        )
    late = [f"attack {name}" for name, reason in found.not_tried.items() if reason == LATE]
    why = {name: reason for name, reason in found.not_tried.items() if reason != LATE}
    return replace(risk, attacks=found.attacks, not_tried=why | _two_needed()), late


def _two_needed() -> dict[str, str]:
    from dbanon.anonymization.attacks.together.registry import ATTACKS_ON_BOTH

    return dict.fromkeys(ATTACKS_ON_BOTH, _OF_TWO)


def _used(bench: Bench) -> Utility:
    import numpy as np

    from dbanon.anonymization.utility.measure import utility_of

    return utility_of(
        bench.released,
        bench.policy,
        generator=np.random.default_rng(bench.seed),
        samples=bench.samples,
        stages=bench.stages,
    )
