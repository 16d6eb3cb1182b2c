"""A table with its stored policy and served releases, and changes that prevent a publication."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dbanon.db import catalog, identity, rights
from dbanon.db.metadata import ledger, store
from dbanon.db.metadata.migrate import require_current
from dbanon.db.releases import relations
from dbanon.domain.drift import Baseline, Change, compare
from dbanon.domain.errors import (
    AccessDrift,
    ConfigError,
    DriftError,
    PolicyError,
    TableNotFound,
    TaxonomyError,
)
from dbanon.domain.policy import DEFAULT_NAME, DROP, ColumnRule, Policy, Role, policy_option
from dbanon.domain.policy_warning import Code, Contents, PolicyWarning
from dbanon.domain.table import ColumnKind, ColumnStats, TableInfo, TableName, quote_identifier
from dbanon.domain.text import command, converted, unread
from dbanon.formats import policies
from dbanon.formats.policy_validation import validate
from dbanon.formats.policy_warnings import (
    AS_IT_IS,
    LONGEST,
    alike,
    is_allowed,
    policy_warnings,
    unknown,
)
from dbanon.formats.suggestions import candidates, find
from dbanon.models.registry import MODELS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from dbanon.db.metadata.store import Stored
    from dbanon.db.session import Session
    from dbanon.domain.assignment import Taxonomy
    from dbanon.domain.policy import Approval
    from dbanon.domain.release import Entry, Release
    from dbanon.request import Request


@dataclass(frozen=True, slots=True)
class Loaded:
    """A table, its stored policy and its served releases, from one snapshot.

    ``wanted`` is the requested name of the policy; ``now`` describes the present table, None
    without that policy; ``taxonomies`` are the newest existing versions of those in the policy.
    """

    info: TableInfo
    wanted: str
    stored: Stored | None
    now: Baseline | None
    taxonomies: Mapping[str, Taxonomy]
    served: tuple[Entry, ...]
    together: tuple[Entry, ...]
    """Served releases of datasets with this table, of whatever table."""
    names: tuple[str, ...]
    """Of all policies of the table."""
    is_draft: bool = False
    """Whether the policy is not stored, but only tried."""

    @property
    def approval(self) -> Approval | None:
        """The stored version with its approval, None for a draft."""
        return None if self.stored is None else self.stored.approval

    @property
    def policy(self) -> Policy:
        """The stored policy with the columns that ``rest`` adds; raises PolicyError if missing."""
        return self.written.completed(self.info)

    @property
    def written(self) -> Policy:
        """The stored policy; raises PolicyError if there is none."""
        if self.stored is None:
            raise no_policy(self.info.name, self.wanted, names=self.names)
        return self.stored.policy

    @property
    def versions(self) -> Mapping[str, int]:
        """The version of each taxonomy."""
        return {name: taxonomy.version for name, taxonomy in self.taxonomies.items()}


def no_policy(table: TableName, name: str, *, names: Sequence[str]) -> PolicyError:
    """Return the error of a missing policy; names: the existing ones."""
    if not names:
        suggest = command("dbanon policy suggest", table)
        return PolicyError(f"{table} has no policy yet", hint=suggest)
    known = ", ".join(names)
    return PolicyError(f"{table} has no policy {name}; it has {known}", hint="dbanon policy list")


def load(session: Session, info: TableInfo, name: str, *, draft: Policy | None = None) -> Loaded:
    """Load the stored policy, taxonomies and served releases of a table; name: that of the policy.

    draft: a policy to use as if it had just been stored. Raises PolicyError for an unreadable
    policy, TaxonomyError for a damaged taxonomy.
    """
    if draft is None:
        stored = store.load_stored(session, info.name, name)
    else:
        stored = store.Stored(of_table(session, draft, info), before=None)
    now, taxonomies = None, {}
    if stored is not None:
        info = stored.policy.keyed(info)
        taxonomies = store.newest_taxonomies(session, stored.policy.taxonomies)
        now = store.baseline(session, info, taxonomies)
    entries = ledger.served_entries(session)
    served = tuple(one for one in entries if one.table == info.name)
    together = tuple(one for one in entries if str(info.name) in one.dataset)
    names = store.policy_names(session, info.name)
    is_draft = draft is not None
    return Loaded(info, name, stored, now, taxonomies, served, together, names, is_draft)


def find_source(session: Session, where: TableName) -> TableInfo:
    """Describe a table; raises TableNotFound, or DriftError if it is missing and still served."""
    try:
        return catalog.describe(session, where)
    except TableNotFound as error:
        schemas = session.search_path if where.schema is None else (where.schema,)
        for schema in schemas:
            for entry in ledger.served_entries(session, table=TableName(schema, where.name)):
                raise gone(session, entry) from None
        raise error from None


def find_published(session: Session, where: TableName) -> TableInfo:
    """Describe a table if the metadata is current; raises SchemaOutOfDate."""
    require_current(session)
    return find_source(session, where)


@contextmanager
def looking(
    session: Session,
    *finds: Callable[[], TableInfo],
    needs_tables: Callable[[TableInfo], bool] | None = None,
) -> Iterator[list[TableInfo]]:
    """Open a transaction that keeps nothing, on one snapshot of locked definitions.

    finds: each describes a relation, in an earlier transaction; needs_tables: called there, whether
    the block creates temporary tables, which a READ ONLY transaction refuses. A view is locked
    before the snapshot is taken: the snapshot of a view that was replaced in between would have
    another definition than the one that runs.
    """
    with session.transaction(read_only=True, keep=False):
        found = [find() for find in finds]
        read_only = needs_tables is None or not any(map(needs_tables, found))
    with session.transaction(snapshot=True, read_only=read_only, keep=False):
        for one in found:
            if one.relkind == "v":
                identity.hold(session, one)
        infos = [catalog.describe(session, one.name) for one in found]
        for before, now in zip(found, infos, strict=True):
            identity.require_same(before, now)
        yield infos
        identity.require_admitted(session)


def gone(session: Session, release: Entry) -> DriftError:
    """Return the error of a served release whose source is missing or renamed."""
    now = store.present_name(session, release.table, release.policy_name)
    if now is not None:
        return DriftError(
            f"{release.table} is called {now} now; {release.relation} is served on"
            f" (release {release.id})",
            hint=f"{_back(release.table, now)}, and go on; or dbanon release drop {release.id}",
        )
    return DriftError(
        f"{release.table} is gone; {release.relation} is served on (release {release.id})",
        hint=f"dbanon release drop {release.id}",
    )


def _back(name: TableName, now: TableName) -> str:
    """Return the statements that restore the former name of a table."""
    steps, schema = [], quote_identifier(name.schema or "")
    if now.schema != name.schema:
        steps.append(f"ALTER TABLE {now} SET SCHEMA {schema}")
    if now.name != name.name:
        moved = TableName(name.schema, now.name)
        steps.append(f"ALTER TABLE {moved} RENAME TO {quote_identifier(name.name)}")
    return "; ".join(steps)


def load_for(
    session: Session, info: TableInfo, request: Request, *, draft: Policy | None = None
) -> Loaded:
    """Load a table that is to be published; draft: as in ``load``.

    Raises also ConfigError if its relation serves another policy, and DriftError for changes.
    """
    loaded, relation = load(session, info, request.policy, draft=draft), request.view(info.name)
    require_own_relation(loaded, relation)
    require_unchanged(session, loaded, relation)
    return loaded


def require_shown(session: Session, loaded: Sequence[Loaded], shown: Sequence[str]) -> None:
    """Raise PolicyError unless each policy has, with its taxonomies, the digest that was shown."""
    for one, digest in zip(loaded, shown, strict=True):
        found = store.load_approval(session, one.info.name, one.wanted)
        if found is None or found.digest != digest:
            raise changed_since(one.info.name, "the policy of {}, or a taxonomy of it,")


def changed_since(table: TableName, what: str = "the policy of {}") -> PolicyError:
    """Return the error for what a page shows no more as it is."""
    return PolicyError(
        f"{what.format(table)} was changed since it was shown",
        hint=f"look at it again: {command('dbanon policy history', table)}",
    )


def require_own_relation(loaded: Loaded, relation: TableName) -> None:
    """Raise ConfigError if the relation serves a release of another policy of the table.

    Its readers would find other columns or guarantees under the same name.
    """
    for entry in loaded.served:
        if entry.relation == relation and entry.policy_name != loaded.wanted:
            raise ConfigError(
                f"{relation} serves release {entry.id} by policy {entry.policy_name}, not"
                f" {loaded.wanted}",
                hint=f"publish under another --name, or first: dbanon release drop {entry.id}",
            )


def require_unchanged(session: Session, loaded: Loaded, relation: TableName) -> None:
    """Raise DriftError with all changes, if a release of the table is served.

    relation: the relation to publish, whose readers must have gained no right on the source.
    """
    info, served = loaded.info, loaded.served
    if not served:
        return
    replaced = next((entry for entry in served if entry.relation == relation), None)
    found = [*changes(loaded)]
    if replaced:
        found += gained_rights(session, replaced, targets_of(session, replaced))
    if found:
        kind = AccessDrift if any(change.of_rights for change in found) else DriftError
        release = replaced or served[0]
        lines = [f"{info.name} changed; release {release.id} is served on", *map(str, found)]
        raise kind("\n  ".join(lines), hint=found[0].hint)


def changes(loaded: Loaded) -> list[Change]:
    """Return the changes of the table that prevent a publication."""
    return [change for change in _compared(loaded) if change.stops]


def _compared(loaded: Loaded) -> list[Change]:
    """Return the changes since the policy was stored or last published; reads no row."""
    if loaded.stored is None or loaded.stored.before is None or loaded.now is None:
        return []
    before, now = loaded.stored.before, loaded.now
    name, drops_rest = loaded.info.name, loaded.stored.policy.rest == DROP
    return compare(before, now, table=name, policy=loaded.wanted, drops_rest=drops_rest)


def notes(loaded: Loaded) -> Iterator[PolicyWarning]:
    """Yield the changes that do not prevent a publication."""
    for change in _compared(loaded):
        note = PolicyWarning(Code.NEW_COLUMN, change.column, str(change), change.hint)
        if not change.stops and not is_allowed(note, loaded.policy):
            yield note


def unapproved(loaded: Loaded, request: Request) -> PolicyWarning | None:
    """Return why the policy in force is not an approved one, if approvals are demanded.

    Options of the request must not change what was approved.
    """
    approval, name = loaded.approval, loaded.info.name
    if approval is None or not approval.is_demanded:
        return None
    option = policy_option(loaded.wanted)
    if approval.is_open:
        message = f"version {approval.version} of policy {loaded.wanted} of {name} is not approved"
        hint = command("dbanon policy approve", name, options=option)
        return PolicyWarning(Code.NOT_APPROVED, None, message, f"by another role: {hint}")
    if request.changes(loaded.policy):
        return PolicyWarning(
            Code.NOT_APPROVED,
            None,
            f"options change the approved policy {loaded.wanted} of {name}",
            "leave them out; or write them into the policy, then:"
            f" {command('dbanon policy set', name, options=f'--file ... {option}'.rstrip())}",
        )
    return None


def require_approved(found: Iterable[PolicyWarning | None]) -> None:
    """Raise PolicyError for what ``unapproved`` found of the tables of a publication."""
    reasons = [one for one in found if one is not None]
    if reasons:
        raise PolicyError("\n  ".join(one.message for one in reasons), hint=reasons[0].hint)


def targets_of(session: Session, release: Entry) -> list[Mapping[str, object]]:
    """Return the start of all access paths to hidden data of a release, if its view exists."""
    published = relations.oid_of(session, release.relation)
    if published is None:
        return []
    sources = relations.oids_of(session, release.sources)
    return rights.targets_of(session, published=published, sources=sources)


def gained_rights(
    session: Session, release: Entry, targets: Iterable[Mapping[str, object]]
) -> Iterator[Change]:
    """Yield the readers of a release with access to hidden data by now; targets: its own."""
    for found in rights.reach_of(session, targets):
        revoke = command("dbanon revoke", release.relation, options="ROLE")
        hint = f"{found.remedy}, or {revoke}"
        yield Change(None, f"{found}, and may read {release.relation}", hint, of_rights=True)


def require_valid(policy: Policy, info: TableInfo, taxonomies: Mapping[str, Taxonomy]) -> None:
    """Raise PolicyError with all mismatches of policy and table."""
    from dbanon.anonymization.registry import RECODINGS, make_masking

    validate(policy, info, taxonomies=taxonomies, recodings=RECODINGS, masking=make_masking)


def violations(loaded: Loaded) -> Iterator[Change]:
    """Yield the mismatches of the policy and the table, from the catalog alone."""
    info = loaded.info
    try:
        require_valid(loaded.policy, info, loaded.taxonomies)
    except PolicyError as error:
        yield Change(None, str(error), error.hint or command("dbanon policy suggest", info.name))


def out_of_domain(session: Session, loaded: Loaded) -> Iterator[Change]:
    """Yield the columns with values outside of their taxonomies or orders; reads these columns."""
    from dbanon.anonymization.encoding.encode import encode
    from dbanon.db import transfer

    info, policy = loaded.info, loaded.policy
    read = {Role.QUASI, Role.SENSITIVE}
    rules = [
        rule
        for rule in policy.columns
        if (rule.taxonomy is not None or rule.order is not None) and rule.role in read
    ]
    if not rules:
        return
    kinds = {column.name: column.kind for column in info.columns}
    source = transfer.read(session, info, _only(policy, rules))
    for rule in rules:
        try:
            encode(source.columns, _only(policy, [rule]), kinds=kinds, taxonomies=loaded.taxonomies)
        except (TaxonomyError, PolicyError) as error:
            export = policy_option(loaded.wanted)
            hint = error.hint or command("dbanon policy export", info.name, options=export)
            yield Change(None, str(error), hint)


def _only(policy: Policy, rules: Sequence[ColumnRule]) -> Policy:
    return replace(policy, columns=tuple(rules), models=(), class_label=None)


_STDIN = "-"


def given(policy: str | Path | Policy, *, name: str | None = None) -> Policy:
    """Return a policy from a value, from the path of a TOML file, or from ``-``, standard input.

    name: the name of the policy, which must be its own if it has one. Raises ConfigError if the
    file cannot be read, PolicyError with all of its errors.
    """
    found = policy if isinstance(policy, Policy) else _read(policy)
    if name is None or name == found.name:
        return found
    if found.name != DEFAULT_NAME:
        raise PolicyError(
            f"this is the policy {found.name}, and not {name}",
            hint=f"leave --policy out, or write the name {name} into the file",
        )
    return policies.changed(found, {"name": name})


def requested(request: Request) -> tuple[Request, Policy | None]:
    """Return the request, with the name of its draft if there is one, and the draft."""
    if request.draft is None:
        return request, None
    wanted = None if request.policy == DEFAULT_NAME else request.policy
    policy = given(request.draft, name=wanted)
    return replace(request, policy=policy.name), policy


def _read(path: str | Path) -> Policy:
    from dbanon.anonymization.registry import ALGORITHMS, MASKING, RECODINGS

    try:
        held = sys.stdin.buffer.read() if str(path) == _STDIN else Path(path).read_bytes()
        text = held.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        hint = converted(path, error) or "dbanon policy suggest TABLE"
        raise ConfigError(unread(path, error), hint=hint) from None
    return policies.parse(text, policies.Known(ALGORITHMS, MODELS, RECODINGS, MASKING))


def of_table(session: Session, policy: Policy, info: TableInfo) -> Policy:
    """Return a policy with the full name of its table; raises PolicyError for another table."""
    if info.name != policy.table and catalog.describe(session, policy.table).oid != info.oid:
        raise PolicyError(
            f"the file is a policy of {policy.table}, not of {info.name}",
            hint=command("dbanon policy set", policy.table, options="--file ..."),
        )
    return replace(policy, table=info.name)


_TEXTS = frozenset({ColumnKind.CATEGORY, ColumnKind.ORDINAL})
_MOST_ROWS = 10_000  # are looked at for what values look like
_MOST_VALUES = 100_000  # of a column are read to see whether they are alike


def warnings_of_table(
    session: Session, policy: Policy, info: TableInfo, *, complete: bool = False
) -> list[PolicyWarning]:
    """Return the warnings of a policy, after a look at the columns that are published unchanged.

    Values are counted if the role may read them and reading runs no foreign code. complete: whether
    no command will add models to the policy.
    """
    names = [rule.column for rule in policy.columns if rule.role in AS_IT_IS]
    keys = catalog.foreign_keys(session, info)
    stats: dict[str, ColumnStats] = {}
    rows: dict[str, list[str | None]] = {}
    if not identity.foreign_code(session, info):
        identity.admit(session, info)
        stats, rows = _seen(session, info, policy, {*names, *candidates(info, keys)})
    contents = {name: _filled(stats[name]) for name in names if name in stats}
    for rule in policy.with_role(Role.SENSITIVE):
        if rule.column in contents and info.column(rule.column).kind in _TEXTS:
            values = catalog.distinct_values(session, info, rule.column, _MOST_VALUES)
            known = contents[rule.column]
            contents[rule.column] = Contents(known.n_filled, known.n_distinct, alike(values))
    return policy_warnings(
        policy,
        info,
        contents=contents,
        unique=catalog.unique_columns(session, info),
        complete=complete,
        persons=find(info, keys, stats),
        rows=rows,
    )


def warnings_of_release(session: Session, release: Release) -> list[PolicyWarning]:
    """Return the warnings of a served release, if its source still has its columns."""
    try:
        source = catalog.describe(session, release.table)
    except TableNotFound:
        return []
    there = {column.name for column in source.columns}
    own = tuple(rule for rule in release.policy.columns if rule.column in there)
    if len(own) < len(release.policy.columns) and not release.dataset:
        return []
    # In a dataset, the other columns are those of the persons.
    return warnings_of_table(session, replace(release.policy, columns=own), source, complete=True)


def warnings_of_rows(
    session: Session,
    policy: Policy,
    info: TableInfo,
    columns: pa.Table,
    *,
    filled: Mapping[str, int] | None = None,
) -> list[PolicyWarning]:
    """Return the warnings before a publication, which has read the sensitive columns already.

    filled: the number of values of each, if only a row with each distinct value was read for sure.
    """
    insensitive = [rule.column for rule in policy.with_role(Role.INSENSITIVE)]
    keys = catalog.foreign_keys(session, info)
    stats, rows = _seen(session, info, policy, {*insensitive, *candidates(info, keys)})
    contents = {name: _filled(stats[name]) for name in insensitive if name in stats}
    sensitive = [rule.column for rule in policy.with_role(Role.SENSITIVE)]
    values = {name: _values(columns.column(name)) for name in sensitive}
    for name, own in values.items():
        column, is_text = columns.column(name), info.column(name).kind in _TEXTS
        n_filled = len(column) - column.null_count if filled is None else filled[name]
        contents[name] = Contents(n_filled, len(own), alike(own) if is_text else 0)
    found = policy_warnings(
        policy,
        info,
        contents=contents,
        unique=catalog.unique_columns(session, info),
        complete=True,
        persons=find(info, keys, stats),
        rows=rows,
    )
    return [*found, *unknown(policy, values)]


def require_no_warnings(found: Sequence[PolicyWarning]) -> None:
    """Raise PolicyError with every warning, if there is one.

    New columns stop nothing, and a missing approval stops every publication.
    """
    found = [one for one in found if one.code not in {Code.NEW_COLUMN, Code.NOT_APPROVED}]
    if found:
        count = "a warning" if len(found) == 1 else f"{len(found)} warnings"
        lines = [f"the policy has {count}, and --strict refuses:", *map(str, found)]
        allow = f'allow = ["{found[0].code}: why"]'
        raise PolicyError("\n  ".join(lines), hint=f"{found[0].hint}; or, if meant, {allow}")


def _seen(
    session: Session, info: TableInfo, policy: Policy, names: Collection[str]
) -> tuple[dict[str, ColumnStats], dict[str, list[str | None]]]:
    """Count the values of columns; return also some rows of the published ones.

    Empty if none is published unchanged, or if the role may not read them.
    """
    shown = [rule.column for rule in policy.columns if rule.role.is_published]
    if not any(rule.role in AS_IT_IS for rule in policy.columns):
        shown = []
    some = {name for name in shown if info.column(name).kind.can_be_quasi}
    readable = catalog.readable_columns(session, info, some.union(names))
    counted = readable.intersection(names)
    stats = catalog.statistics(session, info, counted)[1] if counted else {}
    names = sorted(some & readable)
    return stats, catalog.first_rows(session, info, names, limit=_MOST_ROWS, length=LONGEST)


def _filled(stats: ColumnStats) -> Contents:
    return Contents(stats.n_rows - stats.n_null, stats.n_distinct)


def _values(column: pa.ChunkedArray) -> list[str]:
    """Return the distinct values of a column as texts, without NULL."""
    values: list[str] = column.chunk(0).dictionary.to_pylist() if column.num_chunks else []
    return values
