"""Read the population that models of a policy count."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dbanon.domain.policy import Role

if TYPE_CHECKING:
    from dbanon.anonymization.encoding.population import Population
    from dbanon.db.session import Session
    from dbanon.domain.assignment import EncodedTable
    from dbanon.domain.policy import Policy
    from dbanon.domain.progress import Stages
    from dbanon.domain.table import TableInfo


def read_population(
    session: Session, info: TableInfo, policy: Policy, encoded: EncodedTable, stages: Stages
) -> Population | None:
    """Read the population, if a model counts it; raises PolicyError when it is none of this."""
    from dbanon.anonymization.encoding.population import encode_population
    from dbanon.db import transfer
    from dbanon.db.proofs import population
    from dbanon.models.base import Scope
    from dbanon.models.specs import of_scope

    if not of_scope(policy.models, Scope.POPULATION):
        return None
    everybody = population.describe(session, info, policy, n_rows=encoded.n_rows)
    quasi = replace(policy, columns=policy.with_role(Role.QUASI))
    transfer.require_fit(session, everybody, quasi)
    with stages("read"):
        rows = transfer.read(session, replace(everybody, primary_key=()), quasi)
    with stages("encode"):
        return encode_population(rows.columns, encoded)
