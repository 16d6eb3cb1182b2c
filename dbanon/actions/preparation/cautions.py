"""Look for what a policy allows and its author has seldom meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.domain.caution import Contents
from dbanon.domain.errors import PolicyError
from dbanon.domain.policy import Role
from dbanon.domain.table import ColumnKind

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import pyarrow as pa

    from dbanon.db.session import Session
    from dbanon.domain.caution import Caution
    from dbanon.domain.policy import Policy
    from dbanon.domain.table import TableInfo

_TEXTS = frozenset({ColumnKind.CATEGORY, ColumnKind.ORDINAL})
_MOST_VALUES = 100_000  # of a column are read to see whether they are alike


def of_table(session: Session, policy: Policy, info: TableInfo) -> list[Caution]:
    """Return what to think about again, after a look at the columns published as they are.

    Their values are counted where this role may read them, and reading runs nobody else's code.
    """
    from dbanon.db import catalog, identity
    from dbanon.formats.cautions import AS_IT_IS, alike, cautions

    names = [rule.column for rule in policy.columns if rule.role in AS_IT_IS]
    contents: dict[str, Contents] = {}
    if not identity.foreign_code(session, info):
        identity.admit(session, info)
        contents = _counted(session, info, names)
    for rule in policy.with_role(Role.SENSITIVE):
        if rule.column in contents and info.column(rule.column).kind in _TEXTS:
            values = catalog.distinct_values(session, info, rule.column, _MOST_VALUES)
            known = contents[rule.column]
            contents[rule.column] = Contents(known.n_filled, known.n_distinct, alike(values))
    unique = catalog.unique_columns(session, info)
    return cautions(policy, info, contents=contents, unique=unique, complete=False)


def of_rows(session: Session, policy: Policy, info: TableInfo, columns: pa.Table) -> list[Caution]:
    """Return the same before a publication, which has read the sensitive columns already."""
    from dbanon.db import catalog
    from dbanon.formats.cautions import cautions

    insensitive = [rule.column for rule in policy.with_role(Role.INSENSITIVE)]
    contents = _counted(session, info, insensitive)
    for rule in policy.with_role(Role.SENSITIVE):
        is_text = info.column(rule.column).kind in _TEXTS
        contents[rule.column] = _contents(columns.column(rule.column), look=is_text)
    unique = catalog.unique_columns(session, info)
    return cautions(policy, info, contents=contents, unique=unique, complete=True)


def require_none(found: Sequence[Caution]) -> None:
    """Raise PolicyError with every caution, if there is one."""
    if found:
        count = "a warning" if len(found) == 1 else f"{len(found)} warnings"
        lines = [f"the policy has {count}, and --strict refuses:", *(c.told for c in found)]
        allow = f'allow = ["{found[0].code}: why"]'
        raise PolicyError("\n  ".join(lines), hint=f"{found[0].hint}; or, if meant, {allow}")


def _counted(session: Session, info: TableInfo, names: Collection[str]) -> dict[str, Contents]:
    from dbanon.db import catalog

    names = catalog.readable_columns(session, info, names)
    if not names:
        return {}
    _, stats = catalog.statistics(session, info, names)
    return {
        name: Contents(found.n_rows - found.n_null, found.n_distinct)
        for name, found in stats.items()
    }


def _contents(column: pa.ChunkedArray, *, look: bool) -> Contents:
    from dbanon.formats.cautions import alike

    values = column.chunk(0).dictionary.to_pylist() if column.num_chunks else []
    n_alike = alike(values) if look else 0
    return Contents(len(column) - column.null_count, len(values), n_alike)
