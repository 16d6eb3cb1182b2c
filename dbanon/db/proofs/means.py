"""Prove that means and midpoints lie within the values of their classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.db import identity
from dbanon.db.queries import template
from dbanon.domain.errors import DatabaseError
from dbanon.domain.policy import Role
from dbanon.domain.table import ColumnKind, quote_identifier

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.domain.policy import ColumnRule
    from dbanon.domain.table import ColumnInfo

# What values and means compare as, and by how much rounding moves a mean of that kind.
_EXACT = {
    ColumnKind.INTEGER: "{}::pg_catalog.numeric",
    ColumnKind.DECIMAL: "{}::pg_catalog.numeric",
    ColumnKind.FLOAT: "{}::pg_catalog.text::pg_catalog.numeric",
}
_HALF_A_SECOND = sql.SQL("interval '500 milliseconds'")
_OUTSIDE = """\
count(*) FILTER (WHERE ({mean} BETWEEN {least} - {rounding} AND {greatest} + {rounding}) IS NOT TRUE
                 AND num_nonnulls({mean}, {least}) > 0)"""


def require_within(session: Session, publication: Publication) -> None:
    """Raise DatabaseError if a mean is outside of its class's values, read from the source."""
    rules = publication.policy.means
    if not rules:
        return
    info = publication.info
    reading = publication.stage if info.is_computed else identity.readable(session, info)
    ends = (end for i, rule in enumerate(rules) for end in _ends(i, info.column(rule.column)))
    statement = template(
        "proofs.means_outside",
        outside=sql.SQL(", ").join(_outside(publication, i, rule) for i, rule in enumerate(rules)),
        ends=sql.SQL(", ").join(ends),
        source=reading,
        rows=publication.rows,
        groups=publication.groups,
        join=publication.join,
    )
    found = identity.harmless(session, statement).fetchone() or ()
    problems = [
        f"{count:,} published means of column {quote_identifier(rule.column)}"
        for rule, count in zip(rules, found, strict=True)
        if count
    ]
    if problems:
        raise DatabaseError(
            f"{' and '.join(problems)} lie outside of the values of their classes;"
            " nothing was published",
            hint='recoding = "interval" publishes the column; this is a defect of dbanon',
        )


def _ends(number: int, column: ColumnInfo) -> Iterator[sql.Composed]:
    exact = sql.SQL(_EXACT.get(column.kind, "{}"))
    for call, name in (("min({})", f"least_{number}"), ("max({})", f"greatest_{number}")):
        end = exact.format(sql.SQL(call).format(sql.Identifier("s", column.name)))
        yield sql.SQL("{} AS {}").format(end, sql.Identifier(name))


def _outside(publication: Publication, number: int, rule: ColumnRule) -> sql.Composed:
    kind = publication.info.column(rule.column).kind
    rounding: sql.Composable = _HALF_A_SECOND
    if kind is ColumnKind.DATE:
        rounding = sql.Literal(0)
    elif not kind.is_moment:
        rounding = sql.SQL("5e-{}").format(sql.Literal(rule.decimals(kind) + 1))
    place = [one.column for one in publication.policy.with_role(Role.QUASI)].index(rule.column)
    return sql.SQL(_OUTSIDE).format(
        mean=sql.Identifier("g", f"q{place + 1}"),
        least=sql.Identifier("c", f"least_{number}"),
        greatest=sql.Identifier("c", f"greatest_{number}"),
        rounding=rounding,
    )
