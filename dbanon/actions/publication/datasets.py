"""Several tables of the same persons, published together."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dbanon.actions.preparation.fingerprint import fingerprint
from dbanon.actions.preparation.linked import prepare_linked
from dbanon.actions.publication.series import compare_together, placed
from dbanon.actions.publication.steps import build, replaced, serve
from dbanon.domain.checks import CheckFailed
from dbanon.domain.errors import ConfigError
from dbanon.domain.text import converted, unread
from dbanon.formats.datasets import parse
from dbanon.formats.support import Mode, require

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbanon.actions.preparation.loading import Loaded
    from dbanon.actions.preparation.prepare import Prepared
    from dbanon.actions.publication.steps import Built
    from dbanon.db.session import Session
    from dbanon.domain.composition import Gate
    from dbanon.domain.progress import Stages
    from dbanon.domain.release import Entry, Release
    from dbanon.domain.table import TableName
    from dbanon.formats.datasets import Dataset
    from dbanon.request import Request


def read(path: str | Path) -> Dataset:
    """Read the file of a dataset; raises ConfigError."""
    try:
        return parse(Path(path).read_bytes().decode("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        hint = converted(path, error) or "--dataset FILE, of TOML"
        raise ConfigError(unread(path, error), hint=hint) from None


def asked(request: Request) -> Request:
    """Return what is asked of a dataset; raises ConfigError for what is asked of one table."""
    require(Mode.DATASET, request.asked())
    return request


def publish_dataset_in(
    session: Session,
    loaded: Sequence[Loaded],
    request: Request,
    stages: Stages,
    *,
    gate: Gate,
) -> list[Release]:
    """Do all of a publication inside the open transaction of ``publishing``."""
    request = replace(request, dataset=tuple(str(one.info.name) for one in loaded))
    _require_apart(loaded, request)
    previous = [replaced(session, one.info, request) for one in loaded]
    for one in loaded:
        placed(session, one.info, request, gate=gate)
    prepared = prepare_linked(session, loaded, request, stages, strict=gate.strict)
    built: list[Built] = []
    for found, entry in zip(prepared, previous, strict=True):
        built.append(_built(session, found, entry, request, stages, first=built[:1], gate=gate))
    digest = joint_fingerprint(session, loaded, request)
    serve_all = partial(serve_together, session, loaded, built, request, stages)
    return serve_all(gate=gate, digest=digest)


def _built(
    session: Session,
    prepared: Prepared,
    previous: Entry | None,
    request: Request,
    stages: Stages,
    *,
    first: Sequence[Built],
    gate: Gate,
) -> Built:
    """Build the release of a table; first: that of the persons, by whose key it remembers them."""
    from dbanon.db.histories import memory

    key = None
    for persons in first:
        key = memory.key_of(session, persons.publication.info.name, persons.publication.view)
    return build(session, prepared, request, stages, previous=previous, gate=gate, key=key)


def serve_together(
    session: Session,
    loaded: Sequence[Loaded],
    built: Sequence[Built],
    request: Request,
    stages: Stages,
    *,
    gate: Gate,
    digest: str,
) -> list[Release]:
    """Prove what was built of all tables together, and let readers have it; raises CheckFailed.

    digest: of all that they depend on.
    """
    with stages("check"):
        built = proved_together(session, built)
    with stages("compare"):
        composition = compare_together(session, [one.publication for one in built], gate)
    with stages("record"):
        first, *rest = (
            serve(session, one, done, request, stages, fingerprint=digest)
            for one, done in zip(loaded, built, strict=True)
        )
    if composition.warnings or composition.note is not None:
        first = replace(first, composition=composition)
    return [first, *rest]


def _require_apart(loaded: Sequence[Loaded], request: Request) -> None:
    """Raise ConfigError if two tables would be served under one name, or are one table."""
    seen: dict[TableName, TableName] = {}
    for one in loaded:
        table, view = one.info.name, request.view(one.info.name)
        if view in seen:
            if seen[view] == table:
                raise ConfigError(f"the dataset names {table} twice", hint="each table once")
            raise ConfigError(
                f"{seen[view]} and {table} would both be published as {view}",
                hint="name a view of one of them in the dataset",
            )
        seen[view] = table


def joint_fingerprint(session: Session, loaded: Sequence[Loaded], request: Request) -> str:
    """Return a digest of all that the releases of a dataset depend on."""
    parts = [fingerprint(session, one, request.over(one.policy), request) for one in loaded]
    return hashlib.sha256("".join(parts).encode()).hexdigest()


def proved_together(session: Session, built: Sequence[Built]) -> list[Built]:
    """Return what was built with what holds of all of it together; raises CheckFailed."""
    from dbanon.db.histories import joint
    from dbanon.db.proofs.linked import prove_linked

    publications = [one.publication for one in built]
    is_new = publications[0].withdrawn is None
    found = (prove_linked if is_new else joint.prove)(session, publications)
    proved = [
        replace(one, report=replace(one.report, results=(*one.report.results, *results)))
        for one, results in zip(built, found, strict=True)
    ]
    for one in proved:
        if not one.report.passed:
            raise CheckFailed(
                f"{one.publication.view} did not hold of its persons:"
                f" {'; '.join(one.report.shortfalls)}; nothing was published",
                one.report,
                hint="dbanon publish --dry-run, asking for less",
            )
    return proved
