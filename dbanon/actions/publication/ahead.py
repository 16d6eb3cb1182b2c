"""What the database does of a publication while its rows are grouped here."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbanon.actions.preparation.fingerprint import digest_of_rows
from dbanon.actions.preparation.prepare import in_force
from dbanon.actions.publication.series import key_of_persons
from dbanon.domain.release import ReleaseKind

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from dbanon.actions.preparation.loading import Loaded
    from dbanon.actions.preparation.prepare import Source
    from dbanon.db.session import Session
    from dbanon.domain.composition import Gate
    from dbanon.request import Request


@dataclass(slots=True)
class Ahead:
    """What was done of a publication while its rows were grouped, in its own transaction.

    hashed: the key by which all who were read are hashed, None where they are not;
    of_rows: the digest of the rows of the source, None where it was not made.
    """

    session: Session
    loaded: Loaded
    request: Request
    gate: Gate
    hashed: UUID | None = None
    of_rows: str | None = None

    @contextmanager
    def working(self, source: Source) -> Iterator[None]:
        """Work while the block runs, and be done at its end; the block leaves the session alone."""
        with self.session.meanwhile(lambda: self._work(source)):
            yield

    def _work(self, source: Source) -> None:
        policy, info = in_force(self.loaded, self.request), self.loaded.info
        if self.request.relation_kind is ReleaseKind.TABLE and policy.subject is None:
            from dbanon.db.person_hashes import hash_persons

            view = self.request.view(info.name)
            key = key_of_persons(self.session, info.name, view, self.gate)
            hash_persons(self.session, source.rows.keys, key)
            self.hashed = key
        self.of_rows = digest_of_rows(self.session, info, policy)
