"""Prove published relations again in the database, and describe their promises."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dbanon.db import catalog, identity, rights
from dbanon.db.metadata import ledger
from dbanon.db.metadata.migrate import current_session
from dbanon.db.proofs import checks
from dbanon.db.releases.companion_relations import BUCKETS
from dbanon.db.releases.relations import Promise, read_promise
from dbanon.db.session import Session, connect
from dbanon.domain.errors import ConfigError, DbanonError
from dbanon.domain.messages import in_words
from dbanon.domain.policy import ModelSpec, Role
from dbanon.domain.release import CheckFailed, CheckReport, CheckResult, Release, Verdict
from dbanon.domain.table import ColumnInfo, TableInfo, TableName
from dbanon.domain.text import command
from dbanon.formats.finders import given
from dbanon.formats.support import Mode, require
from dbanon.models.base import Scope
from dbanon.models.registry import MODELS
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class Checked:
    """The check of one relation.

    ``release`` is None if other parameters than its own were checked; ``error`` is the reason of a
    failure; ``remark`` is the reason if the ledger has no record of it.
    """

    relation: TableName
    release: int | None
    verdict: Verdict
    results: tuple[CheckResult, ...]
    recorded: bool = False
    remark: str | None = None
    error: DbanonError | None = None

    @property
    def report(self) -> CheckReport:
        """The results as a report."""
        return CheckReport(self.relation, self.results)


@dataclass(frozen=True, slots=True)
class DescribedColumn:
    """A published column with its type, role and description."""

    name: str
    type: str
    role: Role
    words: str


@dataclass(frozen=True, slots=True)
class Described:
    """The promise of a published relation; ``proved_at`` is None for older releases.

    ``former``: share of rows with former values by column, empty for roles that cannot read the
    ledger.
    """

    relation: TableName
    release: int
    models: tuple[ModelSpec, ...]
    columns: tuple[DescribedColumn, ...]
    proved_at: datetime | None
    former: Mapping[str, float] = field(default_factory=dict)


def check(
    relation: str | TableName,
    *,
    k: int | None = None,
    l: int | None = None,
    quasi: Sequence[str] = (),
    sensitive: Sequence[str] = (),
    settings: Settings | None = None,
) -> CheckReport:
    """Count every equivalence class of a relation, and compare with its promise.

    The promise is in the comment of a published relation. Arguments override it, and are required
    for any other relation. Needs only SELECT on the relation and EXECUTE on the check functions;
    records the result in the ledger if the role may write it. Raises CheckFailed if a model fails
    or if there is nothing to check.
    """
    checked = check_one(relation, k=k, l=l, quasi=quasi, sensitive=sensitive, settings=settings)
    if checked.error is not None:
        raise checked.error
    return checked.report


def check_one(
    relation: str | TableName,
    *,
    k: int | None = None,
    l: int | None = None,
    quasi: Sequence[str] = (),
    sensitive: Sequence[str] = (),
    settings: Settings | None = None,
) -> Checked:
    """Check like ``check``, and return the failure instead of raising it."""
    own = k is None and l is None and not quasi and not sensitive
    with connect(settings or Settings.load()) as session:
        found = _found(session, TableName.parse(relation))
        with _held(session, found) as info:
            promise = _promise(session, info, k=k, l=l, quasi=quasi, sensitive=sensitive)
            if own:
                identity.require_release(session, info, None)
            report = _proved(session, info, promise, own=own)
            if own and report.passed:
                _require_kept(session, info)
        return _judged(session, report, release=promise.release if own else None)


def _found(session: Session, where: TableName) -> TableInfo:
    with session.transaction(read_only=True, keep=False):
        return catalog.describe(session, where)


@contextmanager
def _held(session: Session, found: TableInfo) -> Iterator[TableInfo]:
    """Open the transaction of a proof, and lock the relation against DDL until its end.

    The lock precedes the snapshot, so that both see the same definition.
    """
    with session.transaction(snapshot=True, read_only=True, keep=False):
        identity.hold(session, found)
        session.allow_memory()
        info = catalog.describe(session, found.name)
        identity.require_same(found, info)
        yield info
        identity.require_admitted(session)


def _proved(
    session: Session, info: TableInfo, promise: Promise, *, own: bool = True
) -> CheckReport:
    from dbanon.db.proofs import subjects

    identity.admit(session, info)
    if promise.anatomy:
        catalog.describe_published(session, BUCKETS.name(info.name))
    report = checks.prove(session, info, promise, own=own)
    return subjects.prove_population_again(session, info, promise, report)


@contextmanager
def proved_relation(
    session: Session, relation: str | TableName
) -> Iterator[tuple[TableInfo, int, CheckReport]]:
    """Prove a published relation, and keep the snapshot for the block that reads it.

    Gives also the number of its release. Raises ConfigError for a relation that dbanon did not
    publish or that is anatomy, which is two relations, and CheckFailed.
    """
    found = _found(session, TableName.parse(relation))
    with _held(session, found) as info:
        release = described(session, info.name)[1].release
        identity.require_release(session, info, None)
        promise = _promise(session, info, k=None, l=None, quasi=(), sensitive=())
        if promise.anatomy:
            raise ConfigError(
                f"{info.name} is published by anatomy, as two relations",
                hint=f"COPY {info.name} and {BUCKETS.name(info.name)} in psql",
            )
        report = _proved(session, info, promise)
        if not report.passed:
            raise CheckFailed(explain(report), report, hint="dbanon release list")
        _require_kept(session, info)
        yield info, release, report


def check_all(*, settings: Settings | None = None) -> list[Checked]:
    """Check every served release against the ledger, and record the results.

    A release that cannot be checked has the verdict ``not checked`` and an ``error``; the others
    are checked nevertheless.
    """
    settings = settings or Settings.load()
    with current_session(settings) as session:
        served = ledger.releases(session, served=True)
    attempts = (_attempt(release, settings) for release in served)
    return [found for found in attempts if found is not None]


def _attempt(release: Release, settings: Settings) -> Checked | None:
    """Check the release that a relation serves now; None if it was withdrawn meanwhile."""
    try:
        with connect(settings) as session:
            with session.transaction(read_only=True, keep=False):
                present = ledger.served_release(session, release.relation)
            if present is None:
                return None
            release = present
            found = _found(session, release.relation)
            with _held(session, found) as info:
                present = ledger.served_release(session, release.relation)
                if present is None:
                    return None
                release = present
                report = _proved(session, info, kept_promise(session, info, release))
            return _judged(session, report, release=release.id)
    except DbanonError as error:
        nothing = CheckReport(release.relation, ())
        with connect(settings) as session:
            return _judged(session, nothing, release=release.id, error=error)


def _require_kept(session: Session, info: TableInfo) -> None:
    """Raise ConfigError if the ledger has another promise; for a role that may read it."""
    release = ledger.served_release(session, info.name) if rights.has_ledger(session) else None
    if release is not None:
        kept_promise(session, info, release)


def kept_promise(session: Session, info: TableInfo, release: Release) -> Promise:
    """Return the promise of a release; raises ConfigError unless it is the published one."""
    identity.require_release(session, info, release.data_id)
    promise = read_promise(session, info)
    if promise is None or promise.release != release.id or not promise.is_of(release.policy):
        raise ConfigError(
            f"{info.name} is not, or does not promise, what release {release.id} published",
            hint="dbanon doctor",
        )
    return promise


def _judged(
    session: Session, report: CheckReport, *, release: int | None, error: DbanonError | None = None
) -> Checked:
    """Return the result with its failure; recorded in the ledger if it is about a release."""
    if error is None and not report.passed:
        error = CheckFailed(explain(report), report, hint="dbanon release list")
    remark = None
    if release:
        reason = None if error is None else str(error)
        remark = ledger.record(session, report, release=release, reason=reason)
    return Checked(
        relation=report.relation,
        release=release or None,
        verdict=report.verdict,
        results=report.results,
        recorded=bool(release) and remark is None,
        remark=remark,
        error=error,
    )


def _promise(
    session: Session,
    info: TableInfo,
    *,
    k: int | None,
    l: int | None,
    quasi: Sequence[str],
    sensitive: Sequence[str],
) -> Promise:
    promise = read_promise(session, info)
    if promise is None:
        if not quasi or k is None:
            _require_no_buckets(session, info)
            raise ConfigError(
                f"{info.name} carries no promise of dbanon's to check",
                hint=command("dbanon check", info.name, options="--quasi age --quasi sex --k 5"),
            )
        promise = Promise(release=0, quasi=tuple(quasi), sensitive=(), models=())
    if promise.anatomy:
        asked = given(k=k, l=l, quasi=quasi, sensitive=sensitive)
        known = {"relation": info.name, "check": command("dbanon check", info.name)}
        require(Mode.CHECK_BUCKETS, asked, **known)
    for column in (*quasi, *sensitive):
        info.column(column)
    promise = replace(
        promise.over(k=k, l=l),
        quasi=tuple(quasi) or promise.quasi,
        sensitive=tuple(sensitive) or promise.sensitive,
    )
    of_values = [one.name for one in promise.models if MODELS[one.name].scope is Scope.SENSITIVE]
    if of_values and not promise.sensitive:
        raise ConfigError(f"{of_values[0]} needs a sensitive column", hint="--sensitive COLUMN")
    return promise


def _require_no_buckets(session: Session, info: TableInfo) -> None:
    """Raise ConfigError for the companion relation of an anatomy release, which has no promise."""
    view = TableName(info.name.schema, info.name.name.removesuffix(BUCKETS.ending))
    if view != info.name and BUCKETS.find(session, view) == info.oid:
        raise ConfigError(
            f"{info.name} has the sensitive values of {view}, and is proved with it",
            hint=command("dbanon check", view),
        )


def explain(report: CheckReport) -> str:
    """Explain why a report did not pass."""
    if all(result.verdict is Verdict.NOT_CHECKED for result in report.results):
        return f"{report.relation} is empty: nothing was checked, so nothing is proved"
    unseen = [r.model for r in report.results if r.verdict is Verdict.NOT_CHECKED]
    if not any(result.verdict is Verdict.FAILED for result in report.results):
        return (
            f"{report.relation}: {', '.join(unseen)} was not checked, which only a role that reads"
            " the population and the ledger can; all else holds"
        )
    return f"{report.relation} does not hold what it promises: {'; '.join(report.shortfalls)}"


def describe(relation: str | TableName, *, settings: Settings | None = None) -> Described:
    """Return the promise and the columns of a published relation; reads no rows.

    Needs only the rights to find the relation. The promise is that of the publication; ``check``
    proves it again. Raises TableNotFound, and ConfigError for a relation that dbanon did not
    publish.
    """
    with (
        connect(settings or Settings.load()) as session,
        session.transaction(read_only=True, keep=False),
    ):
        return described(session, relation)[1]


def described(session: Session, relation: str | TableName) -> tuple[TableInfo, Described]:
    """Return a published relation with its description; raises as ``describe``."""
    info = catalog.describe(session, TableName.parse(relation))
    promise = read_promise(session, info)
    if promise is None:
        raise ConfigError(
            f"{info.name} is not a relation that dbanon published",
            hint=command("dbanon inspect", info.name),
        )
    release = ledger.served_release(session, info.name) if rights.has_ledger(session) else None
    growth = None if release is None else release.growth  # which readers must not see
    return info, Described(
        relation=info.name,
        release=promise.release,
        models=promise.models,
        columns=tuple(_described(column, promise) for column in info.columns),
        proved_at=promise.proved_at,
        former={} if growth is None else growth.former,
    )


def _described(column: ColumnInfo, promise: Promise) -> DescribedColumn:
    role = Role.INSENSITIVE
    if column.name in promise.quasi:
        role = Role.QUASI
    elif column.name in promise.sensitive:
        role = Role.SENSITIVE
    words = column.comment
    if words is None:  # it was published before columns had a comment
        words = "quasi-identifier" if role is Role.QUASI else in_words(column.name, role)
    return DescribedColumn(column.name, column.type, role, words.removeprefix(f"{column.name}: "))
