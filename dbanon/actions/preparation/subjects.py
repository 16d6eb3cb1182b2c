"""The persons of a table whose rows are theirs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dbanon.domain.errors import PolicyError
from dbanon.domain.policy import Role
from dbanon.domain.table import quote_identifier
from dbanon.formats.support import Asked, require

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from dbanon.db.session import Session
    from dbanon.domain.policy import Policy
    from dbanon.domain.table import TableInfo
    from dbanon.formats.support import Mode


def several_a_person(
    session: Session, policy: Policy, info: TableInfo, *, mode: Mode | None
) -> bool:
    """Whether some person owns several rows, or some row is nobody's, which its reader refuses.

    Raises ConfigError where the mode does not support that.
    """
    from dbanon.db import catalog

    if policy.subject is None:
        return False
    if info.is_computed:
        return True  # it may be otherwise when it is read
    rows, subjects = counted = catalog.count_subjects(session, info, policy.subject)
    if mode is not None:
        require(mode, Asked(policy, info, counted=counted))
    return rows != subjects


def with_subject(policy: Policy) -> Policy:
    """Return the policy under which the subject is read along, as sensitive columns are."""
    columns = [
        replace(rule, role=Role.SENSITIVE) if rule.column == policy.subject else rule
        for rule in policy.columns
    ]
    return replace(policy, columns=tuple(columns))


def subjects_of(columns: pa.Table, policy: Policy) -> tuple[NDArray[np.int32], pa.Array]:
    """Return the person of each row, numbered, and the value that names each."""
    import pyarrow as pa

    column = columns.column(policy.subject)
    if column.null_count:
        raise PolicyError(
            f"subject column {quote_identifier(policy.subject or '')} has {column.null_count:,}"
            " NULLs, and NULL counts as no person",
            hint="fill them, leave these rows out by where = [...], or name another subject",
        )
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    numbered = pa.chunked_array([column.combine_chunks()]).dictionary_encode().combine_chunks()
    return numbered.indices.to_numpy(), numbered.dictionary
