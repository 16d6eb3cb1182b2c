"""Tables in which a person may have several rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dbanon.domain.errors import ConfigError
from dbanon.domain.policy import Role
from dbanon.domain.release import ReleaseKind
from dbanon.domain.table import quote_identifier

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from dbanon.db.session import Session
    from dbanon.domain.policy import Policy
    from dbanon.domain.table import TableInfo


def several_a_person(session: Session, policy: Policy, info: TableInfo, kind: ReleaseKind) -> bool:
    """Whether some person owns several rows; raises ConfigError where guards would miss that."""
    from dbanon.db import catalog

    if policy.subject is None:
        return False
    rows, subjects = catalog.count_subjects(session, info, policy.subject)
    if rows != subjects and kind is ReleaseKind.VIEW:
        raise ConfigError(
            f"{info.name} has {rows:,} rows of {subjects:,} subjects"
            f" ({quote_identifier(policy.subject)}), and a live view counts rows, not persons",
            hint="publish it with --as table",
        )
    return rows != subjects


def with_subject(policy: Policy) -> Policy:
    """Return the policy under which the subject is read along, as sensitive columns are."""
    columns = [
        replace(rule, role=Role.SENSITIVE) if rule.column == policy.subject else rule
        for rule in policy.columns
    ]
    return replace(policy, columns=tuple(columns))


def subjects_of(columns: pa.Table, policy: Policy) -> NDArray[np.int32]:
    """Return the person of each row, numbered."""
    import pyarrow as pa

    column = columns.column(policy.subject)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    numbered = pa.chunked_array([column.combine_chunks()]).dictionary_encode()
    subjects: NDArray[np.int32] = numbered.combine_chunks().indices.to_numpy()
    return subjects
