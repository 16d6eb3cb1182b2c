"""Print how many columns of public schemas get the role that a data steward gives them.

    .venv/bin/python tests/benchmarks/roles.py [--wrong] [--held-out]

Each column counts once: it is right if the suggested role is that of the label and, if it is a
quasi-identifier, no category is recoded as a number. --wrong lists the other columns, --held-out
those of the schemas that were not looked at, too.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from data.schemas import labelled

from dbanon.domain.policy import Role
from dbanon.formats import policy_warnings, suggestions

RiskAssessment = tuple[labelled.Labelled, str, bool]
"""A column, its suggested role, and True if its values are recoded as what they are."""


def judge(table: labelled.Labels) -> list[RiskAssessment]:
    """Return each column with the suggested role, and whether its kind is right."""
    persons = suggestions.find(table.info, table.foreign_keys, table.stats)
    keys = table.foreign_keys
    matches = policy_warnings.looks(table.info, table.rows())
    rules = suggestions.suggest(table.info, table.stats, persons, keys=keys, matches=matches)
    found = []
    for column, (rule, _) in zip(table.columns, rules, strict=True):
        kind_is_right = True
        if rule.role is Role.QUASI and column.role == "quasi":
            proposal = suggestions.propose(column.info, table.stats[rule.column], keys)
            is_line = proposal.recoding.startswith("interval")
            kind_is_right = is_line is (column.kind != "category")
        found.append((column, rule.role.value, kind_is_right))
    return found


def main() -> None:
    for held_out in (False, True):
        tables = [
            t for t in labelled.read().values() if (t.schema in labelled.HELD_OUT) is held_out
        ]
        judged = [(table, one) for table in tables for one in judge(table)]
        _print(judged, "held out" if held_out else "tuned")
        if "--wrong" in sys.argv and (not held_out or "--held-out" in sys.argv):
            for table, (column, role, kind) in judged:
                if role != column.role or not kind:
                    what = role if role != column.role else f"{role}, but a {column.kind}"
                    name = f"{table.schema}.{table.name}.{column.info.name}"
                    _write(f"  {name}: {what}, not {column.role}")


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _print(judged: list[tuple[labelled.Labels, RiskAssessment]], title: str) -> None:
    right = sum(role == column.role and kind for _, (column, role, kind) in judged)
    schemas = len({table.schema for table, _ in judged})
    _write(
        f"{title}: {right} of {len(judged)} columns of {schemas} schemas, {right / len(judged):.1%}"
    )
    labels = Counter(column.role for _, (column, _, _) in judged)
    suggested = Counter(role for _, (_, role, _) in judged)
    hits = Counter(role for _, (column, role, _) in judged if role == column.role)
    for role in labels:
        _write(
            f"  {role:10} precision {hits[role] / max(1, suggested[role]):6.1%}"
            f"  recall {hits[role] / labels[role]:6.1%}  of {labels[role]}"
        )
    kinds = sum(not kind for _, (_, _, kind) in judged)
    _write(f"  categories recoded as numbers, or the reverse: {kinds}")


if __name__ == "__main__":
    main()
