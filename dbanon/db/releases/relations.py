"""Compose and drop the relations of a release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.db.queries import identifiers, relation, template
from dbanon.db.releases.guarantee import describe_promise
from dbanon.db.releases.immutability import seal_statements, seen, seen_body, shape
from dbanon.db.releases.live import marks
from dbanon.db.releases.live.guards import drop_guards, guard_statements
from dbanon.db.releases.publication import data_table, identity_statement
from dbanon.domain.release import ReleaseKind
from dbanon.domain.wording import OF_BUCKETS, floor_in_words, in_words, pseudonym_in_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.domain.release import Entry
    from dbanon.domain.table import TableName


def needed_tables(release: Entry) -> tuple[str, ...]:
    """Return the possible names of the private tables of a served release."""
    membership = membership_id(release)
    prefixes = ("rows", "groups", "marks")
    return f"release_{release.data_id}", *(f"{prefix}_{membership}" for prefix in prefixes)


def membership_id(release: Entry) -> int:
    """Return the number of the membership of a release, which releases of a live view share."""
    return release.data_id if release.kind is ReleaseKind.VIEW else release.id


def build_statements(publication: Publication) -> Iterator[sql.Composed]:
    """Yield the statements that create the empty private tables."""
    yield _rows_statement(publication)
    yield identity_statement(publication.rows)
    recoded = sql.SQL(",\n    ").join(
        sql.SQL("{} {}{}").format(
            sql.Identifier(f"q{i}"),
            sql.Identifier("pg_catalog", published.removesuffix("[]")),
            sql.SQL("[]" if published.endswith("[]") else ""),
        )
        for i, published in enumerate(publication.stored_types, 1)
    )
    if publication.kind is ReleaseKind.TABLE:
        recoded += sql.SQL(",\n    class bigint")
    yield template(
        "releases.create_groups",
        groups=publication.groups,
        release=sql.Literal(publication.id),
        columns=recoded,
    )
    yield identity_statement(publication.groups)
    if publication.drafted:
        kept = [
            sql.SQL(", s.{} AS {}").format(sql.Identifier(name), sql.Identifier(f"v{i}"))
            for i, name in enumerate(publication.kept, 1)
        ]
        yield template(
            "releases.create_draft",
            draft=publication.draft,
            columns=sql.SQL("").join(kept),
            source=publication.reading,
        )


def _rows_statement(publication: Publication) -> sql.Composed:
    keys = sql.SQL(", ").join(
        sql.SQL("{} AS {}").format(key, sql.Identifier(name))
        for name, key in zip(publication.key_columns, publication.keys(of="s"), strict=True)
    )
    last = "".join(f", 0 AS {name}" for name in publication.noted_columns)
    if publication.kind is ReleaseKind.VIEW and publication.info.leaves:
        last = ", 0 AS leaf"
    return template(
        "releases.create_rows",
        rows=publication.rows,
        keys=keys,
        last=sql.SQL(last),
        source=publication.reading,
    )


def serve_statements(publication: Publication) -> Iterator[sql.Composed]:
    """Yield the statements that create the sealed copy, or the guards on the source."""
    if publication.kind is ReleaseKind.VIEW:
        yield from guard_statements(publication)
    else:
        yield from copy_statements(publication, "releases.create_release")
        yield from close_statements(publication)
        return
    yield from seen_statements(publication)


def close_statements(publication: Publication) -> Iterator[sql.Composed]:
    """Yield the statements that make a new copy immutable, and create its snapshot function."""
    yield identity_statement(publication.release)
    yield from seal_statements(publication.release, publication.id)
    yield from seen_statements(publication)


def copy_statements(
    publication: Publication, name: str, **slots: sql.Composable
) -> Iterator[sql.Composed]:
    """Yield the statements that fill the private copy by a template with additional slots."""
    yield template(
        "releases.number_groups",
        **{"class": publication.number_of_group},
        groups=publication.groups,
        key=sql.Literal(publication.key),
    )
    if publication.drafted:
        # Without statistics PostgreSQL expects many groups of one number, and sorts to join.
        yield sql.SQL("ANALYZE {} (group_id)").format(publication.groups)
    served = served_rows(publication)
    yield template(name, release=publication.release, served=served, **slots)
    if publication.drafted:
        yield sql.SQL("DROP TABLE {}").format(publication.draft)


def served_rows(publication: Publication) -> sql.Composed:
    """Compose the query of the rows of the private copy."""
    groups, column = publication.groups, publication.class_column
    columns = sql.SQL("{}, g.class AS {}").format(publication.columns(), column)
    if publication.drafted:
        draft = publication.draft
        return template(
            "releases.release_rows_of_draft", columns=columns, draft=draft, groups=groups
        )
    return template(
        "releases.release_rows",
        columns=columns,
        source=publication.reading,
        rows=publication.rows,
        groups=groups,
        join=publication.join,
    )


def seen_statements(publication: Publication) -> Iterator[sql.Composed]:
    """Yield the function that raises an error for older snapshots, which would see no rows."""
    of_copy = publication.kind is ReleaseKind.TABLE
    body = seen_body(publication.release) if of_copy else marks.seen_body(publication)
    yield template("releases.create_seen", seen=publication.seen, body=sql.Literal(body))
    # Readers call it, even if default privileges revoke EXECUTE.
    yield sql.SQL("GRANT EXECUTE ON FUNCTION {}() TO PUBLIC").format(publication.seen)


def view_statement(publication: Publication, name: TableName | None = None) -> sql.Composed:
    """Compose the published view, or an equal one under another name."""
    view, names = relation(name or publication.view), identifiers(publication.names)
    if publication.kind is ReleaseKind.TABLE:
        return template(
            "releases.publish_table",
            view=view,
            names=names,
            columns=identifiers(publication.names, of="s"),
            release=publication.release,
            seen=publication.seen,
        )
    live = publication.live(
        "live.live_rows",
        columns=publication.columns(),
        groups=publication.groups,
        seen=publication.seen,
    )
    return template("live.publish_view", view=view, names=names, live=live)


def comment_statement(publication: Publication, candidate: TableName | None = None) -> sql.Composed:
    """Compose the comment with the promise, for the view or its candidate."""
    return sql.SQL("COMMENT ON VIEW {} IS {}").format(
        relation(candidate or publication.view), sql.Literal(describe_promise(publication))
    )


def wording_statements(
    publication: Publication, written: Mapping[str, str] | None = None
) -> Iterator[sql.Composed]:
    """Yield the comments that describe the columns of the view; written: user comments to keep."""
    recodings = dict(publication.recodings)
    rules = {name: rule for rule in publication.policy.columns for name in rule.published_as}
    for name in publication.names:
        rule = rules.get(name)
        if name == publication.policy.pseudonym:
            words = pseudonym_in_words(name)
        elif rule is None:
            words = OF_BUCKETS[name]
        else:
            recoding, floor = recodings.get(rule.column), floor_in_words(rule)
            masking = publication.policy.masked(rule.column)
            words = in_words(name, rule.role, recoding=recoding, floor=floor, masking=masking)
        text = (written or {}).get(name, words)
        column = sql.SQL("{}.{}").format(relation(publication.view), sql.Identifier(name))
        yield sql.SQL("COMMENT ON COLUMN {} IS {}").format(column, sql.Literal(text))


def forget_statements(publication: Publication) -> Iterator[sql.Composed]:
    """Yield the statements that drop the membership, which a proved copy does not need."""
    for table in (publication.rows, publication.groups):
        yield sql.SQL("DROP TABLE {}").format(table)


def drop_membership(session: Session, number: int) -> None:
    """Drop the membership, the group values and the guards of a release."""
    drop_guards(session, number)
    members = data_table("members", number)
    session.pg.execute(sql.SQL("DROP VIEW IF EXISTS {}").format(members))
    for prefix in ("rows", "groups"):
        table = data_table(prefix, number)
        session.pg.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(table))


def drop_copy(session: Session, number: int) -> None:
    """Drop a private copy with its type and its snapshot function."""
    table = data_table("release", number)
    session.pg.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(table))
    session.pg.execute(sql.SQL("DROP FUNCTION IF EXISTS {}()").format(seen(number)))
    session.pg.execute(sql.SQL("DROP TYPE IF EXISTS {}").format(shape(number)))
