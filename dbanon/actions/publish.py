"""Publish an anonymized relation of a table, proved by the database before anyone sees it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from dbanon.actions.preparation.fingerprint import fingerprint
from dbanon.actions.preparation.prepare import prepare
from dbanon.actions.publication.ahead import Ahead
from dbanon.actions.publication.opening import publishing
from dbanon.actions.publication.series import placed
from dbanon.actions.publication.sharing import require_unshared, share
from dbanon.actions.publication.steps import build, replaced, serve
from dbanon.domain.progress import Stages
from dbanon.formats.datasets import Dataset
from dbanon.request import Request, spelled_out
from dbanon.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

    from dbanon.actions.distribution.dividing import Division
    from dbanon.actions.preparation.loading import Loaded
    from dbanon.db.session import Session
    from dbanon.domain.composition import Gate
    from dbanon.domain.release import Release
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
    with publishing([(table, request)], settings, keep=keep) as (session, (loaded,)):
        return publish_in(session, loaded, request, stages, gate=gate, division=division)


def publish_in(
    session: Session,
    loaded: Loaded,
    request: Request,
    stages: Stages,
    *,
    gate: Gate,
    division: Division | None = None,
) -> Release:
    """Do all of a publication inside the open transaction of ``publishing``.

    division: how the table is divided into blocks, None where it is grouped in one piece.
    """
    previous = replaced(session, loaded.info, request)
    gate = placed(session, loaded.info, request, gate=gate)
    sharing, ahead = None, Ahead(session, loaded, request, gate)
    if division is not None:
        from dbanon.actions.distribution.dividing import prepare_in_blocks

        require_unshared(session, loaded, request, gate=gate)
        prepared = prepare_in_blocks(
            session, loaded, request, stages, division=division, strict=gate.strict
        )
    elif shared := share(session, loaded, request, stages, gate=gate):
        prepared, sharing = shared
    else:
        strict, meanwhile = gate.strict, ahead.working
        prepared = prepare(session, loaded, request, stages, strict=strict, meanwhile=meanwhile)
    made = partial(build, session, prepared, request, stages, previous=previous, gate=gate)
    built = made(hashed=ahead.hashed)
    with stages("record"):
        known = ahead.of_rows
        found = fingerprint(session, loaded, prepared.policy, request, of_rows=known)
        release = serve(session, loaded, built, request, stages, fingerprint=found)
    return replace(release, sharing=sharing)


def publish_dataset_request(dataset: str | Path | Dataset, request: Request) -> list[Release]:
    """Publish several tables of the same persons together, by one partition of the persons.

    ``dataset`` is a value or the path of a TOML file that names the table of the persons and the
    tables whose rows are theirs, each with a stored policy that says who its ``subject`` is. Rows
    of all tables are published with the quasi-identifiers of the class of their person, and k and
    the models hold of each table and of any join of them. Takes the options of ``publish``, but no
    ``name``, ``subject``, ``population`` or live view, and raises what it raises.
    """
    from dbanon.actions.publication.datasets import asked, publish_dataset_in, read

    settings = request.settings or Settings.load()
    found = dataset if isinstance(dataset, Dataset) else read(dataset)
    request = asked(request)
    wanted = [(name, request) for name in found.names]
    with publishing(wanted, settings, keep=not request.dry_run) as (session, loaded):
        stages = request.stages or Stages()
        return publish_dataset_in(session, loaded, request, stages, gate=request.gate)


publish = spelled_out(publish_request, "publish", make=Request)
publish_dataset = spelled_out(publish_dataset_request, "publish_dataset", make=Request)
