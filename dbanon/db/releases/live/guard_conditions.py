"""The conditions that the guards of a live view hold its classes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.db.models.functions import TYPES, arithmetic, fails
from dbanon.db.models.statements import demands
from dbanon.db.queries import equal_text, template
from dbanon.domain.policy import Role
from dbanon.models.base import Reads
from dbanon.models.registry import MODELS
from dbanon.models.specs import arguments

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dbanon.db.models.statements import Demand
    from dbanon.db.releases.publication import Publication
    from dbanon.domain.policy import ModelSpec
    from dbanon.domain.table import ColumnInfo

_TRIED = 4  # times k or l: where values are skewed, l of them take some rows to find
_NUMBERS = frozenset({"int2", "int4", "int8", "numeric", "float4", "float8"})


def watched(publication: Publication) -> dict[str, sql.Identifier]:
    """Name the columns that models look at, as ``live_members`` gives them."""
    policy = publication.policy
    names = [rule.column for rule in policy.with_role(Role.SENSITIVE)]
    if policy.subject is not None:
        names.append(policy.subject)
    return {name: sql.Identifier(f"v{i}") for i, name in enumerate(dict.fromkeys(names), 1)}


def plain_block(publication: Publication, members: sql.Composable) -> sql.Composed:
    """Compose what hides the touched classes that fail k or distinct l.

    members: the statement of ``live_members``. Where more rows cannot break what some rows meet,
    a class costs as much as it takes to find them, however large it is.
    """
    holds, policy = plain_conditions(publication), publication.policy
    plain = template("guards.guard_plain", groups=publication.groups, members=members, holds=holds)
    if not _grows(publication):
        return plain
    few = sql.Literal(_TRIED * max(policy.k, policy.l))
    return template("guards.guard_first", members=members, few=few, holds=holds, plain=plain)


def _grows(publication: Publication) -> bool:
    """Whether k and distinct l hold of all rows of a class when they hold of some.

    Not when the rows of a person must agree.
    """
    policy = publication.policy
    return len(policy.models) == 1 or policy.subject in {None, *_whole_key(publication)}


def _whole_key(publication: Publication) -> tuple[str, ...]:
    key = publication.info.primary_key
    return key if len(key) == 1 else ()


def plain_conditions(publication: Publication) -> sql.Composed:
    """Compose what the rows ``s`` of a class must meet for k and distinct l.

    A person with several rows counts once in k, and with two values of a sensitive column not even
    distinct l would hold for persons.
    """
    policy, columns = publication.policy, watched(publication)
    sensitive = [columns[rule.column] for rule in policy.with_role(Role.SENSITIVE)]
    conditions = []
    if policy.subject is None or (policy.subject,) == publication.info.primary_key:
        conditions.append(sql.SQL("count(*) >= {}").format(sql.Literal(policy.k)))
    else:
        persons = sql.SQL("count(DISTINCT s.{})").format(columns[policy.subject])
        conditions.append(sql.SQL("{} >= {}").format(persons, sql.Literal(policy.k)))
        if len(policy.models) > 1:
            agree = sql.SQL("count(DISTINCT (s.{}, s.{})) = {}")
            subject = columns[policy.subject]
            conditions += [agree.format(subject, value, persons) for value in sensitive]
    if policy.l > 1:
        distinct = sql.SQL("count(DISTINCT s.{0}) + (count(*) > count(s.{0}))::integer >= {1}")
        conditions += [distinct.format(value, sql.Literal(policy.l)) for value in sensitive]
    return sql.SQL(" AND ").join(conditions)


def depends_on_settings(publication: Publication) -> bool:
    """Whether a model compares texts or numbers that a session's settings would spell anew."""
    return any(MODELS[s.name].reads is not Reads.NOTHING for s in publication.policy.models)


def model_blocks(publication: Publication, members: sql.Composable) -> Iterator[sql.Composed]:
    """Yield the blocks that hide the touched classes which fail a model beyond k and distinct l.

    members: the statement of ``live_members``.
    """
    names = [rule.column for rule in publication.policy.with_role(Role.SENSITIVE)]
    for demand in demands(publication.policy.models, quasi=(), sensitive=names):
        yield _block(publication, demand, members)


def _block(publication: Publication, demand: Demand, members: sql.Composable) -> sql.Composed:
    """Compose what hides the classes that fail one model, by the arithmetic of its check."""
    name, columns = demand.spec.name, watched(publication)
    model, values = MODELS[name], _values(demand.spec)
    assert not model.of_whole  # noqa: S101 - refused before anything is read
    others = [columns[other] for other in demand.quasi]
    column = publication.info.column(demand.column)
    labels, numbers = model.reads is Reads.LABELS, model.reads is Reads.NUMBERS
    return template(
        "guards.guard_model",
        part=_part(others),
        label=_label(column) if labels else sql.SQL("NULL::text"),
        number=_number(column) if numbers else sql.SQL("NULL::double precision"),
        others=sql.SQL("").join(sql.SQL("s.{}, ").format(other) for other in others),
        column=columns[demand.column],
        members=members,
        arithmetic=arithmetic(name, values),
        groups=publication.groups,
        fails=fails(model, values),
    )


def _values(spec: ModelSpec) -> dict[str, sql.Composable]:
    """Compose the values of a model's parameters, in the types of its check."""
    known = MODELS[spec.name].parameters()
    return {
        name: sql.SQL("CAST({} AS {})").format(
            sql.Literal(list(value) if isinstance(value, tuple) else value),
            TYPES[known[name].kind],
        )
        for name, value in arguments(spec).items()
    }


def _part(others: Sequence[sql.Identifier]) -> sql.Composable:
    """Tell the classes of a group apart, which other sensitive columns make if judged strictly."""
    if not others:
        return sql.SQL("0")
    columns = sql.SQL(", ").join(sql.SQL("v.{}").format(name) for name in others)
    return sql.SQL("dense_rank() OVER (PARTITION BY v.group_id ORDER BY {})").format(columns)


def _label(column: ColumnInfo) -> sql.Composable:
    """Compose the text of a value as ``dbanon.tally`` spells it."""
    return equal_text(column, sql.SQL("v.s"))


def _number(column: ColumnInfo) -> sql.Composable:
    """Compose the number of a value as ``dbanon.tally`` does."""
    if column.base_schema == "pg_catalog" and column.base_type in _NUMBERS:
        return sql.SQL("v.s::text::double precision")
    return sql.SQL("NULL::double precision")
