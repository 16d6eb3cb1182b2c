"""The promise of a published relation, stored in its comment for everyone who can read it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from dbanon.db.queries import query
from dbanon.domain.errors import PolicyError
from dbanon.domain.policy import (
    K_ANONYMITY,
    L_DIVERSITY,
    ModelSpec,
    Role,
    plain_count,
    replaced,
)
from dbanon.formats.policies import model_documents, models_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.domain.table import TableInfo

_MARK = "dbanon"


@dataclass(frozen=True, slots=True)
class Promise:
    """The models of a release and the roles of its columns; nothing secret.

    trees: the taxonomies and orders of sensitive columns whose models compare by distance, as
    ``dbanon.distances`` takes them; proved_at: time of the proof, None if unknown; anatomy: True if
    the sensitive values are in a companion relation.
    """

    release: int
    quasi: tuple[str, ...]
    sensitive: tuple[str, ...]
    models: tuple[ModelSpec, ...]
    trees: Mapping[str, object] = field(default_factory=dict)
    proved_at: datetime | None = None
    anatomy: bool = False

    @property
    def k(self) -> int:
        """The minimum number of rows in a class, 1 if not promised."""
        return self._count(K_ANONYMITY, "k")

    @property
    def l(self) -> int:
        """The minimum number of distinct values of every sensitive column, 1 if not promised."""
        return self._count(L_DIVERSITY, "l")

    def _count(self, name: str, parameter: str) -> int:
        return next((plain_count(m, parameter) for m in self.models if m.name == name), 1)

    def over(self, *, k: int | None, l: int | None) -> Promise:
        """Return the promise with another k or l."""
        counts = ((K_ANONYMITY, "k", k), (L_DIVERSITY, "l", l))
        given = (ModelSpec(name, {key: n}) for name, key, n in counts if n is not None)
        return replace(self, models=replaced(self.models, *given))


def promise_of(publication: Publication) -> Promise:
    """Return the promise of a publication."""
    policy = publication.policy
    return Promise(
        release=publication.id,
        quasi=policy.published_quasi,
        sensitive=tuple(rule.column for rule in policy.with_role(Role.SENSITIVE)),
        models=policy.models,
        trees=publication.trees,
        anatomy=policy.anatomy,
    )


def describe_promise(publication: Publication) -> str:
    """Return the comment of the published relation."""
    promise = promise_of(publication)
    document = {
        "release": promise.release,
        "quasi": promise.quasi,
        "sensitive": promise.sensitive,
        "models": model_documents(promise.models),
        "trees": promise.trees,
        "proved_at": datetime.now(UTC).isoformat(timespec="seconds"),
    } | ({"anatomy": True} if promise.anatomy else {})
    return f"{_MARK}: {json.dumps(document, ensure_ascii=False)}"


def read_promise(session: Session, info: TableInfo) -> Promise | None:
    """Read the promise from the comment of a relation; None if dbanon did not write it."""
    row = session.pg.execute(query("catalog.relation_comment"), (info.oid,)).fetchone()
    text = row[0] if row and row[0] else ""
    if not text.startswith(f"{_MARK}: "):
        return None
    try:
        document = json.loads(text.removeprefix(f"{_MARK}: "))
        proved_at = document.get("proved_at")
        return Promise(
            release=int(document["release"]),
            quasi=tuple(map(str, document["quasi"])),
            sensitive=tuple(map(str, document["sensitive"])),
            models=models_of(document["models"]),
            trees=dict(document["trees"]),
            proved_at=None if proved_at is None else datetime.fromisoformat(proved_at),
            anatomy=document.get("anatomy") is True,
        )
    except (AttributeError, ValueError, KeyError, TypeError, PolicyError):
        return None
