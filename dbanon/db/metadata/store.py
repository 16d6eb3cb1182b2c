"""Taxonomies, policies and releases as rows of the metadata tables."""

from __future__ import annotations

import math
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from psycopg import sql
from sqlalchemy.dialects.postgresql import insert

from dbanon.db.metadata import tables as m
from dbanon.db.queries import identifiers
from dbanon.domain.assignment import LossReport
from dbanon.domain.checks import CheckReport, CheckResult, Verdict, Verification
from dbanon.domain.drift import Baseline
from dbanon.domain.errors import PolicyError
from dbanon.domain.release import Release, ReleaseKind
from dbanon.domain.table import TableName
from dbanon.domain.text import command
from dbanon.formats import policies, taxonomies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from dbanon.db.session import Session
    from dbanon.domain.policy import Policy
    from dbanon.domain.taxonomy import Taxonomy


# Taxonomies: a new import is a new version; the newest is in force.


def add_taxonomy(session: Session, taxonomy: Taxonomy) -> int:
    """Store the taxonomy as the next version of its name and return that version.

    Of two that store one name at once, one waits for the other.
    """
    taxonomy_id, version = session.unless_overtaken(partial(_next_version, session, taxonomy))
    copy = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(m.SCHEMA, m.taxonomy_node.name),
        identifiers(("taxonomy_id", *taxonomies.NodeRow._fields)),
    )
    with session.pg.cursor().copy(copy) as rows:
        for node in taxonomies.rows(taxonomy):
            rows.write_row((taxonomy_id, *node))
    return version


def _next_version(session: Session, taxonomy: Taxonomy) -> tuple[int, int]:
    """Enter the next version of a taxonomy without its nodes; return its key and number."""
    table = m.taxonomy
    newest = sa.select(sa.func.coalesce(sa.func.max(table.c.version), 0)).where(
        table.c.name == taxonomy.name
    )
    version = session.sa.execute(newest).scalar_one() + 1
    taxonomy_id = session.sa.execute(
        sa.insert(table)
        .values(
            name=taxonomy.name, version=version, n_leaves=taxonomy.n_leaves, height=taxonomy.height
        )
        .returning(table.c.taxonomy_id)
    ).scalar_one()
    return int(taxonomy_id), int(version)


def load_taxonomies(
    session: Session, names: Iterable[str], *, versions: Mapping[str, int] | None = None
) -> dict[str, Taxonomy]:
    """Return each named taxonomy that exists, the newest version if ``versions`` tells no other."""
    found = {}
    for name in sorted(set(names)):
        version = (versions or {}).get(name)
        newest = session.sa.execute(
            sa.select(m.taxonomy.c.taxonomy_id, m.taxonomy.c.version)
            .where(
                m.taxonomy.c.name == name,
                sa.true() if version is None else m.taxonomy.c.version == version,
            )
            .order_by(m.taxonomy.c.version.desc())
            .limit(1)
        ).first()
        if newest is not None:
            nodes = session.sa.execute(
                sa.select(*(m.taxonomy_node.c[field] for field in taxonomies.NodeRow._fields))
                .where(m.taxonomy_node.c.taxonomy_id == newest.taxonomy_id)
                .order_by(m.taxonomy_node.c.node_id)
            )
            found[name] = taxonomies.from_rows(name, nodes, version=newest.version)
    return found


def list_taxonomies(session: Session) -> list[dict[str, Any]]:
    """Return every version of every taxonomy, newest first within a name."""
    table = m.taxonomy
    columns = (table.c.name, table.c.version, table.c.n_leaves, table.c.height, table.c.created_at)
    rows = session.sa.execute(sa.select(*columns).order_by(table.c.name, table.c.version.desc()))
    return [dict(row) for row in rows.mappings()]


def drop_taxonomy(session: Session, name: str) -> int:
    """Delete all versions of a taxonomy and return how many there were."""
    return session.sa.execute(sa.delete(m.taxonomy).where(m.taxonomy.c.name == name)).rowcount


# Policies: one a table.


def save_policy(session: Session, policy: Policy) -> None:
    """Store the policy of its table in place of the present one; raises PolicyError.

    What would not be read back as it is given is not stored: other commands list what is.
    """
    document = policies.to_document(policy)
    statement = insert(m.policy).values(
        table_schema=policy.table.schema, table_name=policy.table.name, document=document
    )
    session.sa.execute(
        statement.on_conflict_do_update(
            index_elements=[m.policy.c.table_schema, m.policy.c.table_name],
            set_={"document": document, "updated_at": sa.func.now()},
        )
    )
    stored = load_policy(session, policy.table)
    if stored is None or policies.to_document(stored) != document:
        raise PolicyError(
            "the policy would not be read back as it is written",
            hint="write its numbers in fewer digits, and its texts without odd characters",
        )


def load_policy(session: Session, table: TableName) -> Policy | None:
    """Return the policy of a table, or None; raises PolicyError for one that cannot be read."""
    document = session.sa.execute(
        sa.select(m.policy.c.document).where(*_of_table(m.policy, table))
    ).scalar()
    return None if document is None else _policy(table, document)


def _policy(table: TableName, document: Mapping[str, object]) -> Policy:
    try:
        return policies.from_document(document)
    except PolicyError as error:
        hint = command("dbanon policy set", table, options="--file ...")
        raise PolicyError(f"as it is stored for {table}, {error}", hint=hint) from None


def save_baseline(session: Session, table: TableName, baseline: Baseline) -> None:
    """Remember what the table of a policy looks like."""
    statement = sa.update(m.policy).where(*_of_table(m.policy, table))
    session.sa.execute(statement.values(baseline=asdict(baseline)))


def load_baseline(session: Session, table: TableName) -> Baseline | None:
    """Return what the table looked like, None where an older version kept its policy."""
    document = session.sa.execute(
        sa.select(m.policy.c.baseline).where(*_of_table(m.policy, table))
    ).scalar()
    return None if document is None else Baseline.from_document(document)


def list_policies(
    session: Session, *, on_unreadable: Callable[[PolicyError], None]
) -> list[Policy]:
    """Return all policies that can be read, by table; tell of each other one."""
    columns = m.policy.c
    order = columns.table_schema, columns.table_name
    found = []
    for *name, document in session.sa.execute(sa.select(*order, columns.document).order_by(*order)):
        try:
            found.append(_policy(TableName(*name), document))
        except PolicyError as error:
            on_unreadable(error)
    return found


def policies_naming(session: Session, taxonomy: str) -> list[TableName]:
    """Return the tables whose policies name a taxonomy, even if they cannot be read."""
    columns = m.policy.c
    naming = {"columns": [{"taxonomy": taxonomy}]}
    found = session.sa.execute(
        sa.select(columns.table_schema, columns.table_name)
        .where(columns.document.contains(naming))
        .order_by(columns.table_schema, columns.table_name)
    )
    return [TableName(*name) for name in found]


def drop_policy(session: Session, table: TableName) -> bool:
    """Delete the policy of a table; return whether there was one."""
    deleted = session.sa.execute(sa.delete(m.policy).where(*_of_table(m.policy, table)))
    return deleted.rowcount > 0


# Releases: the ledger.


def next_release_id(session: Session) -> int:
    """Take the number of the next release; a gap in the ledger is a publication that failed."""
    sequence = sa.text("SELECT nextval(pg_get_serial_sequence('dbanon.release', 'release_id'))")
    return int(session.sa.execute(sequence).scalar_one())


def add_release(session: Session, release: Release) -> Release:
    """Enter a release into the ledger as the one that its relation serves; return it dated."""
    before = (*_of_relation(release.relation), m.release.c.served)
    session.sa.execute(sa.update(m.release).where(*before).values(served=False))
    session.sa.execute(
        sa.insert(m.release).values(
            release_id=release.id,
            table_schema=release.table.schema,
            table_name=release.table.name,
            relation_schema=release.relation.schema,
            relation_name=release.relation.name,
            kind=release.kind.value,
            policy=policies.to_document(release.policy),
            overrides=dict(release.overrides),
            taxonomies=dict(release.taxonomies),
            seed=release.seed,
            checks=_documents(release.checks.results),
            loss=asdict(release.loss),
            fingerprint=release.fingerprint,
            content=release.content,
            data_id=release.data_id,
            served=True,
        )
    )
    return next(_releases(session, m.release.c.release_id == release.id))


def served_release(session: Session, relation: TableName) -> Release | None:
    """Return the release that the relation serves, or None."""
    found = list(_releases(session, *_of_relation(relation), m.release.c.served))
    return found[0] if found else None


def latest_release(session: Session, relation: TableName) -> Release | None:
    """Return the newest release of a relation, served or not, or None."""
    return next(_releases(session, *_of_relation(relation)), None)


def withdraw(session: Session, release_id: int) -> bool:
    """Mark a release as no longer served; return whether it was."""
    table = m.release
    found = session.sa.execute(
        sa.update(table)
        .where(table.c.release_id == release_id, table.c.served)
        .values(served=False)
    )
    return found.rowcount > 0


def serves_data(session: Session, data_id: int) -> bool:
    """Whether a served release has the private tables of that number."""
    table = m.release
    found = session.sa.execute(
        sa.select(table.c.release_id).where(table.c.data_id == data_id, table.c.served)
    )
    return found.first() is not None


def releases(
    session: Session, *, table: TableName | None = None, served: bool = False
) -> list[Release]:
    """Return the ledger, newest first; of one table, or only what is served, if asked."""
    conditions = [] if table is None else _of_table(m.release, table)
    if served:
        conditions = [*conditions, m.release.c.served]
    return list(_releases(session, *conditions))


def release_by_id(session: Session, release_id: int) -> Release | None:
    """Return one release, or None."""
    found = list(_releases(session, m.release.c.release_id == release_id))
    return found[0] if found else None


def _of_table(table: sa.Table, name: TableName) -> list[sa.ColumnElement[bool]]:
    return [table.c.table_schema == name.schema, table.c.table_name == name.name]


def _of_relation(name: TableName) -> list[sa.ColumnElement[bool]]:
    columns = m.release.c
    return [columns.relation_schema == name.schema, columns.relation_name == name.name]


def _releases(session: Session, *conditions: sa.ColumnElement[bool]) -> Iterator[Release]:
    older = m.release.alias()
    earlier = (
        sa.select(sa.func.count())
        .where(
            older.c.table_schema == m.release.c.table_schema,
            older.c.table_name == m.release.c.table_name,
            older.c.release_id < m.release.c.release_id,
        )
        .scalar_subquery()
    )
    statement = (
        sa.select(m.release, earlier.label("earlier"))
        .where(*conditions)
        .order_by(m.release.c.release_id.desc())
    )
    for row in session.sa.execute(statement).mappings():
        relation = TableName(row["relation_schema"], row["relation_name"])
        yield Release(
            id=row["release_id"],
            table=TableName(row["table_schema"], row["table_name"]),
            relation=relation,
            kind=ReleaseKind(row["kind"]),
            policy=policies.from_document(row["policy"]),
            seed=row["seed"],
            checks=CheckReport(relation, _results(row["checks"])),
            loss=LossReport(**row["loss"]),
            overrides=row["overrides"],
            taxonomies=row["taxonomies"],
            fingerprint=row["fingerprint"],
            served=row["served"],
            earlier=row["earlier"],
            content=row["content"],
            data_id=row["data_id"],
            created_at=row["created_at"],
            created_by=row["created_by"],
        )


def _documents(results: Iterable[CheckResult]) -> list[dict[str, Any]]:
    """Spell results for JSON, which has no word for a number that is not finite."""
    return [
        {
            name: str(value) if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in asdict(result).items()
        }
        for result in results
    ]


def _results(documents: Iterable[dict[str, Any]]) -> tuple[CheckResult, ...]:
    return tuple(
        CheckResult(
            **{
                **document,
                **{
                    name: float(document[name])
                    for name in ("required", "achieved")
                    if isinstance(document[name], str)
                },
                "verdict": Verdict(document["verdict"]),
            }
        )
        for document in documents
    )


# Verifications: what was found of a release later.


def add_verification(
    session: Session, release_id: int, report: CheckReport, *, reason: str | None
) -> None:
    """Enter a check of a release into the ledger."""
    session.sa.execute(
        sa.insert(m.verification).values(
            release_id=release_id,
            verdict=report.verdict.value,
            results=_documents(report.results),
            reason=reason,
        )
    )


def verifications(session: Session, release_id: int) -> list[Verification]:
    """Return the checks of a release, newest first."""
    table = m.verification
    rows = session.sa.execute(
        sa.select(table)
        .where(table.c.release_id == release_id)
        .order_by(table.c.verification_id.desc())
    )
    return [
        Verification(
            release=row["release_id"],
            verdict=Verdict(row["verdict"]),
            results=_results(row["results"]),
            reason=row["reason"],
            verified_at=row["verified_at"],
            verified_by=row["verified_by"],
        )
        for row in rows.mappings()
    ]
