"""What a published relation is, for whoever may read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbanon.domain.errors import ConfigError
from dbanon.domain.policy import Role
from dbanon.domain.table import TableName
from dbanon.domain.text import command
from dbanon.domain.wording import in_words
from dbanon.settings import Settings

if TYPE_CHECKING:
    from datetime import datetime

    from dbanon.db.releases.guarantee import Promise
    from dbanon.domain.policy import ModelSpec
    from dbanon.domain.table import ColumnInfo


@dataclass(frozen=True, slots=True)
class DescribedColumn:
    """A published column: its type, and in words what it holds."""

    name: str
    type: str
    role: Role
    words: str


@dataclass(frozen=True, slots=True)
class Described:
    """What a published relation says of itself; ``proved_at`` is None for older releases."""

    relation: TableName
    release: int
    models: tuple[ModelSpec, ...]
    columns: tuple[DescribedColumn, ...]
    proved_at: datetime | None


def describe(relation: str | TableName, *, settings: Settings | None = None) -> Described:
    """Read what a published relation says of itself; reads no row of it.

    Needs no right but to find the relation. It is what was promised when it was published, and
    ``check`` proves it again. Raises TableNotFound, and ConfigError for a relation that dbanon did
    not publish.
    """
    from dbanon.db import catalog
    from dbanon.db.releases.guarantee import read_promise
    from dbanon.db.session import connect

    where = relation if isinstance(relation, TableName) else TableName.parse(relation)
    with (
        connect(settings or Settings.load()) as session,
        session.transaction(read_only=True, keep=False),
    ):
        info = catalog.describe(session, where)
        promise = read_promise(session, info)
    if promise is None:
        raise ConfigError(
            f"{info.name} is not a relation that dbanon published",
            hint=command("dbanon inspect", info.name),
        )
    return Described(
        relation=info.name,
        release=promise.release,
        models=promise.models,
        columns=tuple(_described(column, promise) for column in info.columns),
        proved_at=promise.proved_at,
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
