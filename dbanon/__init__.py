"""Publish a k-anonymous, l-diverse relation of a live PostgreSQL table.

Every command of the command line is one function here. All of them take ``settings``
(``Settings.load()`` when left out: DBANON_DSN, then libpq's variables, then the embedded
server); ``anonymize`` works on a data frame and needs no database at all.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dbanon.actions.compare import compare
    from dbanon.actions.demo import demo
    from dbanon.actions.doctor import doctor
    from dbanon.actions.init import init, init_sql
    from dbanon.actions.inspect import inspect, inspect_query
    from dbanon.actions.jobs.schedules import list_schedules, remove_schedule, set_schedule
    from dbanon.actions.jobs.worker import work
    from dbanon.actions.plan import plan, plan_dataset, plan_with_report
    from dbanon.actions.policy import (
        approve_policy,
        check_policy,
        diff_policies,
        drop_policy,
        export_policy,
        list_policies,
        load_policy,
        policy_approval,
        policy_history,
        set_policy,
        suggest_policy,
    )
    from dbanon.actions.publish import publish, publish_dataset
    from dbanon.actions.refresh import refresh
    from dbanon.actions.releases.attack import attack, attack_both
    from dbanon.actions.releases.check import check, check_all, describe
    from dbanon.actions.releases.counting import count
    from dbanon.actions.releases.export import export
    from dbanon.actions.releases.grant import grant, revoke
    from dbanon.actions.releases.ledger import (
        check_history,
        drop_release,
        forget_series,
        history,
        list_releases,
        list_verifications,
        load_release,
    )
    from dbanon.actions.releases.read import read
    from dbanon.actions.releases.report import report, report_dataset
    from dbanon.actions.releases.sign_off import sign_off
    from dbanon.actions.server import server_psql, server_status, server_stop, server_url
    from dbanon.actions.taxonomy import (
        derive_taxonomy,
        drop_taxonomy,
        export_taxonomy,
        import_taxonomy,
        list_taxonomies,
        load_taxonomy,
    )
    from dbanon.anonymization.data_frame import anonymize
    from dbanon.anonymization.risk.assessment import posterior
    from dbanon.domain.assignment import Taxonomy
    from dbanon.domain.errors import (
        CommitUnknown,
        ConfigError,
        DatabaseError,
        DbanonError,
        DriftError,
        NotPermitted,
        PolicyError,
        SchemaOutOfDate,
        TableNotFound,
        TaxonomyError,
        Unsatisfiable,
    )
    from dbanon.domain.policy import ColumnRule, ModelSpec, Policy, Role
    from dbanon.domain.release import (
        CheckFailed,
        CheckReport,
        CheckResult,
        Release,
        ReleaseKind,
        Verdict,
    )
    from dbanon.domain.table import TableName
    from dbanon.settings import Settings

# Where each name lives: importing dbanon loads none of it, so that a command starts at once.
_HOMES = {
    "actions.compare": "compare",
    "actions.demo": "demo",
    "actions.doctor": "doctor",
    "actions.init": "init init_sql",
    "actions.inspect": "inspect inspect_query",
    "actions.jobs.schedules": "list_schedules remove_schedule set_schedule",
    "actions.jobs.worker": "work",
    "actions.plan": "plan plan_dataset plan_with_report",
    "actions.policy": "approve_policy check_policy diff_policies drop_policy export_policy"
    " list_policies load_policy policy_approval policy_history set_policy suggest_policy",
    "actions.publish": "publish publish_dataset",
    "actions.refresh": "refresh",
    "actions.releases.attack": "attack attack_both",
    "actions.releases.check": "check check_all describe",
    "actions.releases.counting": "count",
    "actions.releases.export": "export",
    "actions.releases.grant": "grant revoke",
    "actions.releases.ledger": "check_history drop_release forget_series history list_releases"
    " list_verifications load_release",
    "actions.releases.read": "read",
    "actions.releases.report": "report report_dataset",
    "actions.releases.sign_off": "sign_off",
    "actions.server": "server_psql server_status server_stop server_url",
    "actions.taxonomy": "derive_taxonomy drop_taxonomy export_taxonomy import_taxonomy"
    " list_taxonomies load_taxonomy",
    "anonymization.data_frame": "anonymize",
    "anonymization.risk.assessment": "posterior",
    "domain.assignment": "Taxonomy",
    "domain.errors": "CommitUnknown ConfigError DatabaseError DbanonError DriftError NotPermitted"
    " PolicyError SchemaOutOfDate TableNotFound TaxonomyError Unsatisfiable",
    "domain.policy": "ColumnRule ModelSpec Policy Role",
    "domain.release": "CheckFailed CheckReport CheckResult Release ReleaseKind Verdict",
    "domain.table": "TableName",
    "settings": "Settings",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "CheckFailed",
    "CheckReport",
    "CheckResult",
    "ColumnRule",
    "CommitUnknown",
    "ConfigError",
    "DatabaseError",
    "DbanonError",
    "DriftError",
    "ModelSpec",
    "NotPermitted",
    "Policy",
    "PolicyError",
    "Release",
    "ReleaseKind",
    "Role",
    "SchemaOutOfDate",
    "Settings",
    "TableName",
    "TableNotFound",
    "Taxonomy",
    "TaxonomyError",
    "Unsatisfiable",
    "Verdict",
    "anonymize",
    "approve_policy",
    "attack",
    "attack_both",
    "check",
    "check_all",
    "check_history",
    "check_policy",
    "compare",
    "count",
    "demo",
    "derive_taxonomy",
    "describe",
    "diff_policies",
    "doctor",
    "drop_policy",
    "drop_release",
    "drop_taxonomy",
    "export",
    "export_policy",
    "export_taxonomy",
    "forget_series",
    "grant",
    "history",
    "import_taxonomy",
    "init",
    "init_sql",
    "inspect",
    "inspect_query",
    "list_policies",
    "list_releases",
    "list_schedules",
    "list_taxonomies",
    "list_verifications",
    "load_policy",
    "load_release",
    "load_taxonomy",
    "plan",
    "plan_dataset",
    "plan_with_report",
    "policy_approval",
    "policy_history",
    "posterior",
    "publish",
    "publish_dataset",
    "read",
    "refresh",
    "remove_schedule",
    "report",
    "report_dataset",
    "revoke",
    "server_psql",
    "server_status",
    "server_stop",
    "server_url",
    "set_policy",
    "set_schedule",
    "sign_off",
    "suggest_policy",
    "work",
]


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
