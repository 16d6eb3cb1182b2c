"""The persons of a table whose rows are theirs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dbanon.domain.errors import ConfigError, PolicyError
from dbanon.domain.policy import Role
from dbanon.domain.release import ReleaseKind
from dbanon.domain.table import quote_identifier
from dbanon.models.registry import MODELS
from dbanon.models.specs import title

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from dbanon.db.session import Session
    from dbanon.domain.policy import Policy
    from dbanon.domain.table import TableInfo


def several_a_person(session: Session, policy: Policy, info: TableInfo, kind: ReleaseKind) -> bool:
    """Whether some person owns several rows, or some row is nobody's, which its reader refuses.

    Raises ConfigError for a live view whose subject may become NULL, or under a model whose guards
    count rows, which then differ from persons. Distinct values are as many of both, for guards hide
    a class with a person of two.
    """
    from dbanon.db import catalog

    if policy.subject is None:
        return False
    if kind is ReleaseKind.VIEW and info.column(policy.subject).nullable:
        raise ConfigError(
            f"subject column {quote_identifier(policy.subject)} of {info.name} may become NULL"
            " while a live view shows it, and NULL counts as no person",
            hint="publish it with --as table, or make the column NOT NULL",
        )
    if info.is_computed:
        return True  # it may be otherwise when it is read
    rows, subjects = catalog.count_subjects(session, info, policy.subject)
    by_rows = [spec for spec in policy.models if not MODELS[spec.name].guards_persons]
    if rows == subjects or policy.rows_per_subject == 1:
        by_rows = []
    if kind is ReleaseKind.VIEW and by_rows:
        raise ConfigError(
            f"{info.name} has {rows:,} rows of {subjects:,} subjects"
            f" ({quote_identifier(policy.subject)}), and a live view counts rows, not persons, for"
            f" {title(by_rows[0])}",
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
