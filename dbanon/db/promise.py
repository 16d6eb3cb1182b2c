"""What a published relation says of itself, in its comment, to anyone who can read it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbanon.db.queries import query
from dbanon.domain.policy import Role

if TYPE_CHECKING:
    from dbanon.db.relations import Publication
    from dbanon.db.session import Session
    from dbanon.domain.table import TableInfo

_MARK = "dbanon"


@dataclass(frozen=True, slots=True)
class Promise:
    """The models of a release and the roles of its columns; nothing that is secret."""

    release: int
    k: int
    l: int
    quasi: tuple[str, ...]
    sensitive: tuple[str, ...]


def promise_of(publication: Publication) -> Promise:
    """Return what the publication promises."""
    policy = publication.policy
    return Promise(
        release=publication.id,
        k=policy.k,
        l=policy.l,
        quasi=tuple(rule.column for rule in policy.with_role(Role.QUASI)),
        sensitive=tuple(rule.column for rule in policy.with_role(Role.SENSITIVE)),
    )


def describe_promise(publication: Publication) -> str:
    """Return the comment of the published relation."""
    promise = promise_of(publication)
    document = {name: getattr(promise, name) for name in Promise.__slots__}
    return f"{_MARK}: {json.dumps(document, ensure_ascii=False)}"


def read_promise(session: Session, info: TableInfo) -> Promise | None:
    """Read the comment of a relation; None when it is not one of dbanon's."""
    row = session.pg.execute(query("relation_comment"), (info.oid,)).fetchone()
    text = row[0] if row and row[0] else ""
    if not text.startswith(f"{_MARK}: "):
        return None
    try:
        document = json.loads(text.removeprefix(f"{_MARK}: "))
        return Promise(
            release=int(document["release"]),
            k=int(document["k"]),
            l=int(document["l"]),
            quasi=tuple(map(str, document["quasi"])),
            sensitive=tuple(map(str, document["sensitive"])),
        )
    except (ValueError, KeyError, TypeError):
        return None
