"""Taxonomies and policies as rows of the metadata tables."""

from __future__ import annotations

import hmac
from dataclasses import asdict
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from dbanon.db.queries import identifiers, printed, query, relation, template
from dbanon.domain.drift import Baseline
from dbanon.domain.errors import DatabaseError, NotPermitted, PolicyError
from dbanon.domain.policy import Approval, Event, Policy, Version, policy_option
from dbanon.domain.table import TableInfo, TableName
from dbanon.domain.text import command
from dbanon.formats import policies, taxonomies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

    from dbanon.db.session import Session
    from dbanon.domain.assignment import Taxonomy
    from dbanon.domain.release import Release


# Taxonomies: a new import is a new version; the newest is in force.


def add_taxonomy(session: Session, taxonomy: Taxonomy) -> int:
    """Store a taxonomy as the next version of its name and return the version."""
    taxonomy_id, version = session.unless_overtaken(partial(_next_version, session, taxonomy))
    copy = template("metadata.copy_nodes", columns=identifiers(taxonomies.NodeRow._fields))
    with session.pg.cursor().copy(copy) as rows:
        for node in taxonomies.rows(taxonomy):
            rows.write_row((taxonomy_id, *node))
    return version


def _next_version(session: Session, taxonomy: Taxonomy) -> tuple[int, int]:
    named = {"name": taxonomy.name, "leaves": taxonomy.n_leaves, "height": taxonomy.height}
    taxonomy_id, version = session.one(query("metadata.add_taxonomy"), named)
    return taxonomy_id, version


def newest_taxonomies(session: Session, names: Iterable[str]) -> dict[str, Taxonomy]:
    """Return the newest version of each named taxonomy that exists; raises TaxonomyError."""
    newest = session.pg.execute(query("metadata.newest_taxonomies"), (list(set(names)),))
    return load_taxonomies(session, dict(newest.fetchall()))


def load_taxonomies(session: Session, versions: Mapping[str, int]) -> dict[str, Taxonomy]:
    """Return the taxonomies of these versions; raises TaxonomyError for a damaged one."""
    columns = identifiers(taxonomies.NodeRow._fields, of="n")
    nodes = session.pg.execute(
        template("metadata.taxonomy_nodes", columns=columns),
        (list(versions), list(versions.values())),
    )
    trees = {name: [row[1:] for row in rows] for name, rows in groupby(nodes, key=itemgetter(0))}
    return {
        name: taxonomies.from_rows(name, trees.get(name, ()), version=version)
        for name, version in versions.items()
    }


def missing_values_query(name: str, *, table: TableName, column: str) -> str:
    """Return the query that lists the values that a taxonomy lacks, for a steward."""
    slots = {
        "table": relation(table),
        "column": sql.Identifier(column),
        "taxonomy": sql.Literal(name),
    }
    return printed(template("metadata.missing_values", **slots))


def list_taxonomies(session: Session) -> list[dict[str, Any]]:
    """Return every version of every taxonomy, newest first within a name."""
    return session.records(query("metadata.taxonomies"))


def drop_taxonomy(session: Session, name: str) -> int:
    """Delete all versions of a taxonomy and return their number."""
    return session.pg.execute(query("metadata.drop_taxonomy"), (name,)).rowcount


# Policies: several per table, distinguished by name.


def save_policy(session: Session, policy: Policy) -> None:
    """Store or replace a policy; raises PolicyError if reading it back gives another."""
    document = policies.to_document(policy)
    named = {**_named(policy.table, policy.name), "document": Jsonb(document)}
    session.pg.execute(query("metadata.save_policy"), named)
    stored, _ = _load(session, policy.table, policy.name)
    if stored is None or policies.to_document(stored.policy) != document:
        raise PolicyError(
            "the policy would not be read back as it is written",
            hint="write its numbers in fewer digits, and its texts without odd characters",
        )


class Stored(NamedTuple):
    """A policy, and its table's shape when last stored or published; None from older versions."""

    policy: Policy
    before: Baseline | None
    approval: Approval | None = None


def load_stored(session: Session, table: TableName, name: str) -> Stored | None:
    """Return the stored policy of a table and name, None if there is none.

    Raises PolicyError if it cannot be read, or differs from its newest version: then it was written
    without ``dbanon policy set``, which records each version with its author.
    """
    stored, is_newest = _load(session, table, name)
    if stored is not None and not is_newest:
        raise _forged(table, name)
    return stored


def _load(session: Session, table: TableName, name: str) -> tuple[Stored | None, bool]:
    """Return the stored policy of a table and name, and True if it equals its newest version."""
    rows = _rows(session, table, name)
    if not rows:
        return None, True
    (row,), before = rows, None
    if row["baseline"] is not None:
        before = _baseline(table, name, row["baseline"])
    policy = _policy(table, name, row["document"])
    return Stored(policy, before, _approval(row)), row["is_newest"]


def _rows(
    session: Session, table: TableName | None, name: str | None, *, digest: bool = False
) -> list[dict[str, Any]]:
    return session.records(query("metadata.policies"), {**_named(table, name), "digest": digest})


def _approval(row: Mapping[str, Any]) -> Approval:
    return Approval(
        policy=row["name"],
        version=row["version"],
        author=row["author"],
        digest=row["digest"],
        by=row["approved_by"],
        at=row["approved_at"],
        is_demanded=row["is_demanded"],
    )


def load_approval(session: Session, table: TableName, name: str) -> Approval | None:
    """Return the stored version of a policy, and who approved it, None if there is no policy."""
    rows = _rows(session, table, name, digest=True)
    if rows and not rows[0]["is_newest"]:
        raise _forged(table, name)
    return _approval(rows[0]) if rows else None


def approval_of(session: Session, release: Release) -> Approval | None:
    """Return the version of the policy of a release, and who approved it with its taxonomies."""
    named = {**_named(release.table, release.policy_name), "version": release.policy_version}
    named["taxonomies"] = Jsonb(dict(release.taxonomies))
    rows = session.records(query("metadata.approval_of_release"), named)
    return _approval(rows[0]) if rows else None


def approvals(session: Session) -> list[tuple[TableName, Approval]]:
    """Return the stored version of every policy, and who approved it, by table and name."""
    rows = _rows(session, None, None)
    return [(TableName(row["table_schema"], row["table_name"]), _approval(row)) for row in rows]


def demands_approval(session: Session) -> bool:
    """Return True if a policy must be approved before it publishes."""
    return session.one(query("metadata.demands_approval")) == (True,)


def approve(session: Session, table: TableName, approval: Approval) -> None:
    """Approve a version of a policy as the role of the session; raises NotPermitted."""
    named = {**_named(table, approval.policy), "version": approval.version}
    try:
        session.pg.execute(query("metadata.approve"), {**named, "digest": approval.digest})
    except psycopg.errors.ObjectNotInPrerequisiteState as refused:  # by the trigger
        found = refused.diag
        raise NotPermitted(found.message_primary or "", hint=found.message_hint) from None
    except psycopg.errors.InsufficientPrivilege:
        raise NotPermitted(
            "this role may not approve policies",
            hint="let the owner of the metadata run: dbanon init --approver ROLE",
        ) from None


def demand_approval(session: Session, *, demand: bool) -> None:
    """Demand that policies are approved before they publish, or end that; for the owner alone."""
    session.pg.execute(query("metadata.demand_approval" if demand else "metadata.end_demand"))


def _forged(table: TableName, name: str) -> PolicyError:
    options = f"--file ... {policy_option(name)}".rstrip()
    return PolicyError(
        f"the policy {name} of {table} is not its newest version: it was written past dbanon"
        " policy set",
        hint=f"{command('dbanon policy history', table)}, then"
        f" {command('dbanon policy set', table, options=options)}",
    )


def _baseline(table: TableName, name: str, document: object) -> Baseline:
    try:
        return Baseline.from_document(cast("Mapping[str, Any]", document))
    except (TypeError, ValueError, KeyError, AttributeError):
        options = f"--file ... {policy_option(name)}".rstrip()
        raise PolicyError(
            f"what {table} looked like when its policy {name} was stored cannot be read",
            hint=command("dbanon policy set", table, options=options),
        ) from None


def _policy(table: TableName, name: str, document: object) -> Policy:
    options = f"--file ... {policy_option(name)}".rstrip()
    hint = command("dbanon policy set", table, options=options)
    if not isinstance(document, dict):
        raise PolicyError(f"what is stored as the policy {name} of {table} is none", hint=hint)
    try:
        return policies.from_document({**document, "name": name})
    except PolicyError as error:
        raise PolicyError(f"as it is stored for {table}, {error}", hint=hint) from None
    except (TypeError, ValueError, KeyError, AttributeError):
        raise PolicyError(f"the policy {name} of {table} is damaged", hint=hint) from None


def policy_names(session: Session, table: TableName) -> tuple[str, ...]:
    """Return the names of the policies of a table, including unreadable ones."""
    found = session.pg.execute(query("metadata.policy_names"), (table.schema, table.name))
    return tuple(name for (name,) in found)


def save_baseline(session: Session, table: TableName, baseline: Baseline, *, name: str) -> None:
    """Store the shape of the table of a policy."""
    named = {**_named(table, name), "baseline": Jsonb(asdict(baseline))}
    session.pg.execute(query("metadata.save_baseline"), named)


def baseline(session: Session, info: TableInfo, known: Mapping[str, Taxonomy]) -> Baseline:
    """Return the present shape of a table, with the versions of its policy's taxonomies."""
    row = session.one(query("catalog.table_shape"), {"relation": info.oid})
    versions = {name: taxonomy.version for name, taxonomy in known.items()}
    return Baseline.from_document({"shape": row[0], "taxonomies": versions})


def present_name(session: Session, table: TableName, name: str) -> TableName | None:
    """Return the present name of the table of a policy, None if unknown."""
    rows = _rows(session, table, name)
    found = rows[0]["baseline"] if rows else None
    before = None if found is None else Baseline.from_document(found).shape
    if before is None or before.oid is None:
        return None
    asked = {"relation": before.oid}
    shape = session.pg.execute(query("catalog.table_shape"), asked).fetchone()
    called = session.pg.execute(query("catalog.name_of_relation"), asked).fetchone()
    if shape is None or called is None:
        return None
    now = Baseline.from_document({"shape": shape[0], "taxonomies": {}}).shape
    return TableName(*called) if now.is_like(before) else None


def list_policies(
    session: Session, *, on_unreadable: Callable[[PolicyError], None]
) -> list[tuple[Policy, datetime]]:
    """Return all readable policies with the time each was stored, by table and name.

    ``on_unreadable`` gets an error for each other one, and for each that is not its newest version.
    """
    rows = _rows(session, None, None)
    found = []
    for row in rows:
        table, name = TableName(row["table_schema"], row["table_name"]), row["name"]
        try:
            policy = _policy(table, name, row["document"])
            if not row["is_newest"]:
                on_unreadable(_forged(policy.table, name))
            found.append((policy, row["updated_at"]))
        except PolicyError as error:
            on_unreadable(error)
    return found


def policies_naming(session: Session, taxonomy: str) -> list[TableName]:
    """Return the tables with policies that name a taxonomy, including unreadable ones."""
    naming = Jsonb({"columns": [{"taxonomy": taxonomy}]})
    found = session.pg.execute(query("metadata.policies_naming"), (naming,))
    return [TableName(*name) for name in found]


def drop_policy(session: Session, table: TableName, name: str) -> bool:
    """Delete a policy of a table; returns True if there was one."""
    deleted = session.pg.execute(query("metadata.drop_policy"), _named(table, name))
    return deleted.rowcount > 0


def sampling_key(session: Session) -> bytes:
    """Return the secret key for drawing samples of persons.

    It is in no statement, because these are logged. Raises DatabaseError if it is missing: a new
    key would draw other persons, and two samples disclose more of the table than one.
    """
    found = session.pg.execute(query("metadata.sampling_key")).fetchone()
    if found is None:
        raise DatabaseError(
            "the key by which samples are drawn is gone from dbanon.sampling_key",
            hint="restore it from a backup; or, to draw other persons from now on: INSERT INTO"
            " dbanon.sampling_key DEFAULT VALUES",
        )
    return bytes(found[0])


def secret_for(session: Session, purpose: str) -> bytes:
    """Derive the secret key of one purpose, which discloses nothing of the others."""
    return hmac.digest(sampling_key(session), purpose.encode(), "sha256")


def _named(table: TableName | None, name: str | None) -> dict[str, object]:
    schema, relation = (None, None) if table is None else (table.schema, table.name)
    return {"schema": schema, "table": relation, "name": name}


# Every policy that was ever stored.


def note_stored(session: Session, policy: Policy) -> None:
    """Record a policy as the next version of its name, unless it equals the newest."""
    document = policies.to_document(policy)
    newest = next(iter(policy_versions(session, policy.table, name=policy.name)), None)
    if newest is None or newest.document != document:
        _note_version(session, policy.table, policy.name, document)


def note_dropped(session: Session, table: TableName, name: str) -> None:
    """Record that the policy of that name was dropped."""
    _note_version(session, table, name, None)


def _note_version(
    session: Session, table: TableName, name: str, document: dict[str, object] | None
) -> None:
    stored = None if document is None else Jsonb(document)
    named = {**_named(table, name), "document": stored}
    session.pg.execute(query("metadata.add_policy_version"), named)


def policy_approvals(session: Session, table: TableName, *, name: str | None) -> list[Event]:
    """Return the approvals of a table's policies; of one name, if given."""
    rows = session.records(query("metadata.policy_approvals"), _named(table, name))
    return [Event(**row) for row in rows]


def policy_versions(
    session: Session, table: TableName, *, name: str | None = None
) -> list[Version]:
    """Return the stored versions of a table's policies, newest first; of one name, if given."""
    rows = session.records(query("metadata.policy_versions"), _named(table, name))
    return [Version(**row) for row in rows]
