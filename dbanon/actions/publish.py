"""Publish an anonymized relation of a table, proved by the database before anyone sees it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from dbanon.actions.preparation.fingerprint import fingerprint
from dbanon.actions.preparation.linked import prepare_linked
from dbanon.actions.preparation.prepare import prepare
from dbanon.actions.publication.ahead import Ahead
from dbanon.actions.publication.datasets import asked, read, require_apart
from dbanon.actions.publication.opening import publishing
from dbanon.actions.publication.series import placed
from dbanon.actions.publication.sharing import require_unshared, share
from dbanon.actions.publication.steps import build, replaced, serve
from dbanon.domain.progress import Stages
from dbanon.formats.datasets import Dataset
from dbanon.request import Request, spelled_out
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from uuid import UUID

    from dbanon.actions.distribution.dividing import Division
    from dbanon.actions.preparation.loading import Loaded
    from dbanon.actions.preparation.prepare import Prepared
    from dbanon.actions.publication.steps import Built
    from dbanon.db.session import Session
    from dbanon.domain.composition import Gate
    from dbanon.domain.release import Release, Sharing
    from dbanon.domain.table import TableName


def publish_request(table: str | TableName, request: Request) -> Release:
    """Publish a table by its stored policy and return the release; one transaction.

    The options go over the policy, as ``dbanon.request.Request`` describes them. A release already
    there is replaced atomically; if anything fails, it stays.

    Raises Unsatisfiable, PolicyError, TaxonomyError, DriftError, CheckFailed, NotPermitted,
    ConfigError, DatabaseError.
    """
    gate = request.gate
    stages, settings = request.stages or Stages(), request.settings or Settings.load()
    division = None
    if request.executor != "threads" or request.rows_per_block is not None:
        from dbanon.actions.distribution.dividing import division_of

        division = division_of(request.executor, request.rows_per_block)
    keep = not request.dry_run
    with publishing([(table, request)], settings, keep=keep) as (session, loaded):
        make = partial(publish_in, gate=gate, division=division)
        return make(session, loaded, request, stages)[0]


def publish_in(
    session: Session,
    loaded: Sequence[Loaded],
    request: Request,
    stages: Stages,
    *,
    gate: Gate,
    division: Division | None = None,
) -> list[Release]:
    """Publish a table, or those of a dataset, inside the open transaction of ``publishing``.

    division: how the table is divided into blocks, None where it is grouped in one piece.
    """
    if len(loaded) > 1:
        request = replace(request, dataset=tuple(str(one.info.name) for one in loaded))
        require_apart(loaded, request)
    previous = [replaced(session, one.info, request) for one in loaded]
    gate, *_ = [placed(session, one.info, request, gate=gate) for one in loaded]
    ahead = Ahead(session, loaded[0], request, gate)
    prepared, sharing = _prepared(session, loaded, request, stages, ahead=ahead, division=division)
    built: list[Built] = []
    for one, entry in zip(prepared, previous, strict=True):
        key = _key_of(session, built[0]) if built else None  # that of the persons, who come first
        made = partial(build, session, one, request, stages, previous=entry, gate=gate)
        built.append(made(key=key, hashed=ahead.hashed))
    with stages("record"):
        found = fingerprint(session, loaded, request, of_rows=ahead.of_rows)
    served = partial(serve, session, loaded, built, request, stages)
    first, *rest = served(gate=gate, fingerprint=found)
    return [replace(first, sharing=sharing), *rest]


def _prepared(
    session: Session,
    loaded: Sequence[Loaded],
    request: Request,
    stages: Stages,
    *,
    ahead: Ahead,
    division: Division | None,
) -> tuple[list[Prepared], Sharing | None]:
    """Group the rows in the way that fits: linked persons, blocks, earlier classes, or all anew."""
    gate = ahead.gate
    if len(loaded) > 1:
        return prepare_linked(session, loaded, request, stages, strict=gate.strict), None
    (one,) = loaded
    if division is not None:
        from dbanon.actions.distribution.dividing import prepare_in_blocks

        require_unshared(session, one, request, gate=gate)
        made = partial(prepare_in_blocks, division=division, strict=gate.strict)
    elif shared := share(session, one, request, stages, gate=gate):
        return [shared[0]], shared[1]
    else:
        made = partial(prepare, strict=gate.strict, meanwhile=ahead.working)
    return [made(session, one, request, stages)], None


def _key_of(session: Session, persons: Built) -> UUID | None:
    """Return the key by which a release remembers its persons."""
    from dbanon.db.histories import memory

    publication = persons.publication
    return memory.key_of(session, publication.info.name, publication.view)


def publish_dataset_request(dataset: str | Path | Dataset, request: Request) -> list[Release]:
    """Publish several tables of the same persons together, by one partition of the persons.

    ``dataset`` is a value or the path of a TOML file that names the table of the persons and the
    tables whose rows are theirs, each with a stored policy that says who its ``subject`` is. Rows
    of all tables are published with the quasi-identifiers of the class of their person, and k and
    the models hold of each table and of any join of them. Takes the options of ``publish``, but no
    ``name``, ``subject``, ``population`` or live view, and raises what it raises.
    """
    settings = request.settings or Settings.load()
    found = dataset if isinstance(dataset, Dataset) else read(dataset)
    request = asked(request)
    wanted = [(name, request) for name in found.names]
    with publishing(wanted, settings, keep=not request.dry_run) as (session, loaded):
        stages = request.stages or Stages()
        return publish_in(session, loaded, request, stages, gate=request.gate)


publish = spelled_out(publish_request, "publish", make=Request)
publish_dataset = spelled_out(publish_dataset_request, "publish_dataset", make=Request)
