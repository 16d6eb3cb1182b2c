"""Whether pseudonyms join only what was compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.domain.checks import CheckFailed, CheckReport
from dbanon.domain.composition import OTHER_READERS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from dbanon.db.histories.memory import Known
    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session


def require_judged(
    session: Session, publication: Publication, *, dataset: Collection[str] = ()
) -> None:
    """Raise CheckFailed where readers could join what nobody has held against each other.

    Of a copy that is remembered by now; dataset: the tables that are judged together with its own.

    Whoever has pseudonyms can put together all relations that are made by one key, and sees how
    many rows each person has in them. Comparing takes that for known of persons with one row, and
    of releases that keep their classes; of all others it counts in which classes somebody is, and
    not how often.
    """
    from dbanon.db.histories import memory

    others = memory.known_by_key(session, publication)
    shown = publication.policy.pseudonym is not None or any(one.pseudonym for one in others)
    found = next(_unjudged(publication, others, dataset), None) if shown else None
    if found is not None:
        raise CheckFailed(
            f"{publication.view}: {found}; nothing was published",
            CheckReport(publication.view, ()),
            hint=OTHER_READERS,
        )


def _unjudged(
    publication: Publication, others: Sequence[Known], dataset: Collection[str]
) -> Iterator[str]:
    info, subject = publication.info, publication.policy.subject
    together = {str(info.name), *dataset}
    for one in others:
        table = str(one.table)
        if table not in together:
            yield (
                f"persons have the same pseudonyms as in releases of {table}, which is not"
                " published together with it"
            )
        if table == str(info.name) and tuple(one.person) != publication.person:
            yield (
                "persons were told apart by other columns before, so that their pseudonyms would be"
                " those of others, and could be compared with nothing"
            )
    several = subject is not None and (subject,) != info.primary_key
    is_one_row = publication.policy.rows_per_subject == 1
    earlier = [one for one in others if one.is_earlier or not dataset]
    is_anew = publication.withdrawn is None and bool(earlier)
    if is_anew and (several or dataset) and not is_one_row:
        yield (
            "persons with several rows are grouped anew, and by their pseudonyms readers would see"
            " how many rows each has in every release"
        )
