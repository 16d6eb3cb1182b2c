"""Policies as somebody gives them: a value, or a file that is not stored yet."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dbanon.domain.errors import ConfigError, PolicyError
from dbanon.domain.policy import DEFAULT_NAME, Policy
from dbanon.domain.text import command, converted, unread

if TYPE_CHECKING:
    from dbanon.db.session import Session
    from dbanon.domain.table import TableInfo
    from dbanon.request import Request

_STDIN = "-"


def given(policy: str | Path | Policy, *, name: str | None = None) -> Policy:
    """Return a policy from a value, from the path of a TOML file, or from ``-``, standard input.

    name: what to call it, unless it has a name of its own; then it must be the same. Raises
    ConfigError when the file cannot be read, PolicyError with everything that is wrong in it.
    """
    from dbanon.formats import policies

    found = policy if isinstance(policy, Policy) else _read(policy)
    if name is None or name == found.name:
        return found
    if found.name != DEFAULT_NAME:
        raise PolicyError(
            f"this is the policy {found.name}, and not {name}",
            hint=f"leave --policy out, or write the name {name} into the file",
        )
    return policies.changed(found, {"name": name})


def requested(request: Request) -> tuple[Request, Policy | None]:
    """Return what is asked for, by the name of a draft if there is one, and the draft."""
    if request.draft is None:
        return request, None
    wanted = None if request.policy == DEFAULT_NAME else request.policy
    policy = given(request.draft, name=wanted)
    return replace(request, policy=policy.name), policy


def _read(path: str | Path) -> Policy:
    from dbanon.anonymization.registry import ALGORITHMS, MASKING, RECODINGS
    from dbanon.formats import policies
    from dbanon.models.registry import MODELS

    try:
        held = sys.stdin.buffer.read() if str(path) == _STDIN else Path(path).read_bytes()
        text = held.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        hint = converted(path, error) or "dbanon policy suggest TABLE"
        raise ConfigError(unread(path, error), hint=hint) from None
    return policies.parse(text, policies.Known(ALGORITHMS, MODELS, RECODINGS, MASKING))


def of_table(session: Session, policy: Policy, info: TableInfo) -> Policy:
    """Return a policy under the full name of its table; raises PolicyError for another table."""
    from dbanon.db import catalog

    if catalog.describe(session, policy.table).oid != info.oid:
        raise PolicyError(
            f"the file is a policy of {policy.table}, not of {info.name}",
            hint=command("dbanon policy set", policy.table, options="--file ..."),
        )
    return replace(policy, table=info.name)
