"""Keep the policies of a database."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dbanon.actions.preparation.loading import load
from dbanon.domain.deeds import Deed
from dbanon.domain.errors import ConfigError, PolicyError
from dbanon.domain.policy import Policy
from dbanon.domain.progress import Stages
from dbanon.domain.table import TableName
from dbanon.domain.text import command
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dbanon.db.session import Session
    from dbanon.domain.caution import Caution
    from dbanon.domain.table import TableInfo
    from dbanon.domain.taxonomy import Taxonomy


def set_policy(
    table: str | TableName,
    policy: str | Path | Policy,
    *,
    strict: bool = False,
    warn: Callable[[Caution], None] | None = None,
    settings: Settings | None = None,
) -> Policy:
    """Check a policy (a value, or the path of a TOML file) against its table and store it.

    What the table looks like is stored along: whatever changes from now on is drift. ``warn`` is
    called with all that is allowed and seldom meant, for which the columns published as they are
    are counted; with ``strict`` nothing is stored then.

    Raises PolicyError with every problem at once, ConfigError when the file cannot be read, and
    TableNotFound.
    """
    from dbanon.actions.preparation.cautions import require_none
    from dbanon.anonymization.pipeline import make_algorithm
    from dbanon.db import identity
    from dbanon.db.metadata import store
    from dbanon.db.metadata.migrate import require_current
    from dbanon.db.session import connect

    given = policy if isinstance(policy, Policy) else _read(policy)
    make_algorithm(given, stages=Stages())  # refuses parameters that it does not have
    looked = strict or warn is not None
    with connect(settings or Settings.load(), writes=True) as session:
        with session.transaction(read_only=True, keep=False):
            require_current(session)
            before, given, _ = _fitted(session, given, _name(table))
            found = _cautions(session, given, before) if looked else []
        if strict:
            require_none(found)
        elif warn is not None:
            for caution in found:
                warn(caution)
        with session.transaction(deed=_deed(table, "stored")):
            info, given, known = _fitted(session, given, before.name)
            identity.require_same(before, info)
            store.save_policy(session, given)
            store.save_baseline(session, info.name, store.baseline(session, info, known))
    return given


def _fitted(
    session: Session, policy: Policy, table: TableName
) -> tuple[TableInfo, Policy, dict[str, Taxonomy]]:
    """Return a table, the policy under its full name, and the taxonomies that it names.

    Raises PolicyError unless the policy fits, TaxonomyError for a taxonomy that is damaged.
    """
    from dbanon.anonymization.registry import RECODINGS
    from dbanon.db import catalog
    from dbanon.db.metadata import store
    from dbanon.formats.policy_validation import validate

    info = catalog.describe(session, table)
    policy = replace(policy, table=_same_table(session, policy.table, info))
    known = store.newest_taxonomies(session, policy.taxonomies)
    info = policy.keyed(info)
    validate(policy, info, taxonomies=known, recodings=RECODINGS)
    return info, policy, known


def _cautions(session: Session, policy: Policy, info: TableInfo) -> list[Caution]:
    from dbanon.actions.preparation.cautions import of_table
    from dbanon.db import identity

    found = of_table(session, policy, info)
    identity.require_admitted(session)
    return found


def _read(path: str | Path) -> Policy:
    from pathlib import Path

    from dbanon.anonymization.registry import ALGORITHMS, RECODINGS
    from dbanon.formats import policies
    from dbanon.models.registry import MODELS

    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"cannot read {path}: {type(error).__name__}", hint="dbanon policy suggest TABLE"
        ) from None
    return policies.parse(text, policies.Known(ALGORITHMS, MODELS, RECODINGS))


def _name(table: str | TableName) -> TableName:
    return table if isinstance(table, TableName) else TableName.parse(table)


def _deed(table: str | TableName, done: str) -> Deed:
    name = _name(table)
    return Deed(f"the policy of {name}", done, command("dbanon policy show", name))


def _same_table(session: Session, written: TableName, info: TableInfo) -> TableName:
    from dbanon.db import catalog

    if catalog.describe(session, written).oid != info.oid:
        raise PolicyError(
            f"the file is a policy of {written}, not of {info.name}",
            hint=command("dbanon policy set", written, options="--file ..."),
        )
    return info.name


def suggest_policy(table: str | TableName, *, settings: Settings | None = None) -> str:
    """Return a policy file to edit: a role for every column, with the reason as a comment."""
    from dbanon.actions.inspect import inspect
    from dbanon.formats.suggestions import draft

    inspection = inspect(table, settings=settings)
    suggested = [(column.suggestion, column.reason) for column in inspection.columns]
    return draft(inspection.info.name, suggested, inspection.persons)


def load_policy(table: str | TableName, *, settings: Settings | None = None) -> Policy:
    """Return the stored policy of a table; raises PolicyError when there is none."""
    from dbanon.db import catalog
    from dbanon.db.metadata.migrate import current_session

    with current_session(settings or Settings.load()) as session:
        return load(session, catalog.describe(session, _name(table))).policy


def export_policy(table: str | TableName, *, settings: Settings | None = None) -> str:
    """Return the stored policy of a table as TOML that ``set_policy`` reads back."""
    from dbanon.formats import policies

    return policies.dump(load_policy(table, settings=settings))


def list_policies(
    *,
    settings: Settings | None = None,
    on_unreadable: Callable[[PolicyError], None] | None = None,
) -> list[Policy]:
    """Return all stored policies, by table.

    ``on_unreadable`` is given the error of each one that cannot be read; without it the first
    such error is raised.
    """
    from dbanon.db.metadata import store
    from dbanon.db.metadata.migrate import current_session

    with current_session(settings or Settings.load()) as session:
        return store.list_policies(session, on_unreadable=on_unreadable or _raise)


def _raise(error: PolicyError) -> None:
    raise error


def drop_policy(table: str | TableName, *, settings: Settings | None = None) -> None:
    """Delete the policy of a table; what is published stays. Raises PolicyError."""
    from dbanon.db.metadata import store
    from dbanon.db.metadata.migrate import current_session

    name, deed = _name(table), _deed(table, "dropped")
    with current_session(settings or Settings.load(), deed=deed) as session:
        schemas = session.search_path if name.schema is None else (name.schema,)
        if not any(store.drop_policy(session, TableName(s, name.name)) for s in schemas):
            raise PolicyError(f"{name} has no policy", hint="dbanon policy list")
