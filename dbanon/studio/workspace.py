"""What the studio remembers: drafts with their undo, commands, and settings; nothing is stored."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from secrets import token_urlsafe
from threading import RLock
from typing import TYPE_CHECKING

from dbanon.actions.inspect import Profile, profile
from dbanon.actions.policy import load_policy, policy_of_profile
from dbanon.actions.server import prepare
from dbanon.domain.errors import PolicyError
from dbanon.domain.policy import DEFAULT_NAME, Policy
from dbanon.formats import policies
from dbanon.studio.jobs import Jobs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dbanon.domain.policy import ColumnRule
    from dbanon.settings import Settings

_MOST_STEPS = 200  # of undo
_MOST_NOTICES = 50  # that are kept for pages to show again


@dataclass(slots=True)
class Draft:
    """A policy that is being written.

    steps: its versions, the first as stored or suggested; at: the present one; stored: the stored
    policy, None if there is none.
    """

    steps: list[Policy]
    stored: Policy | None
    at: int = 0

    @property
    def policy(self) -> Policy:
        """The present version."""
        return self.steps[self.at]

    @property
    def text(self) -> str:
        """The present version as TOML."""
        return policies.dump(self.policy)

    @property
    def mark(self) -> str:
        """What a form sends of the version that it was made from."""
        return policies.digest(self.policy)

    @property
    def is_saved(self) -> bool:
        """True if the stored policy is the same."""
        return self.policy == self.stored

    def change(self, policy: Policy) -> None:
        """Add a version, unless it is the present one."""
        if policy != self.policy:
            first = max(self.at + 2 - _MOST_STEPS, 0)
            self.steps = [*self.steps[first : self.at + 1], policy]
            self.at = len(self.steps) - 1

    def move(self, step: int) -> None:
        """Undo (-1) or redo (1)."""
        self.at = min(max(self.at + step, 0), len(self.steps) - 1)

    def rule(self, column: str) -> ColumnRule:
        """Return the rule of a column; raises PolicyError."""
        for rule in self.policy.columns:
            if rule.column == column:
                return rule
        raise PolicyError("the policy has no such column", hint="open the columns of the table")

    def with_rule(self, rule: ColumnRule) -> Policy:
        """Return the policy with another rule of a column."""
        columns = tuple(rule if one.column == rule.column else one for one in self.policy.columns)
        return replace(self.policy, columns=columns)


@dataclass(slots=True)
class Entry:
    """A form that was refused, with what was entered, the reason, and what to do.

    is_shown: whether its page has shown it in its form.
    """

    action: str
    fields: Mapping[str, str]
    message: str
    hint: str | None
    is_shown: bool = False

    def entered(self, action: str, hidden: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return the entries if this is the form of an action, by its hidden fields."""
        if action != self.action or any(self.fields.get(key) != hidden[key] for key in hidden):
            return None
        self.is_shown = True
        return self.fields


@dataclass(slots=True)
class Workspace:
    """The state of one studio.

    show_source: whether pages may show rows of a source; commands: command lines that do the same
    as what was done, in order; notices: with a refused form, by the key in the address of the page
    that shows them; patience: seconds in which a page waits for the description of a table.
    """

    settings: Settings
    show_source: bool = False
    jobs: Jobs = field(default_factory=partial(Jobs, prepare))
    drafts: dict[tuple[str, str], Draft] = field(default_factory=dict)
    commands: list[str] = field(default_factory=list)
    notices: dict[str, tuple[Sequence[str], Entry | None]] = field(default_factory=dict)
    patience: float = 0.4
    _profiles: dict[str, Future[Profile]] = field(default_factory=dict)
    _readers: ThreadPoolExecutor = field(default_factory=partial(ThreadPoolExecutor, 2))
    _lock: RLock = field(default_factory=RLock)  # requests of several pages have own threads

    def note(self, command: str) -> None:
        """Add a command line, unless it is the last one."""
        if self.commands[-1:] != [command]:
            self.commands.append(command)

    def keep(self, notices: Sequence[str], entry: Entry | None = None) -> str:
        """Keep notices or a refused form for a page, and return their key."""
        key = token_urlsafe(6)
        with self._lock:
            self.notices[key] = notices, entry
            for old in [*self.notices][:-_MOST_NOTICES]:
                del self.notices[old]
        return key

    def profile(self, table: str) -> Profile:
        """Return the columns of a table, as read first."""
        try:
            return self._profiling(table).result()
        except Exception:
            with self._lock:
                self._profiles.pop(table, None)
            raise

    def is_profiled(self, table: str, *, within: float | None) -> bool:
        """Wait some seconds (None: as long as it takes) for the columns of a table."""
        found = self._profiling(table)
        wait([found], timeout=within)
        return found.done()

    def forget_profiles(self) -> None:
        """Read each table again when its columns are needed next."""
        with self._lock:
            self._profiles.clear()

    def _profiling(self, table: str) -> Future[Profile]:
        with self._lock:
            if table not in self._profiles:
                self._profiles[table] = self._readers.submit(profile, table, settings=self.settings)
            return self._profiles[table]

    def draft(self, table: str, name: str = DEFAULT_NAME) -> Draft:
        """Return the draft of a policy, which begins as stored, or as suggested.

        Without changes of its own it follows the stored policy, which others may replace.
        """
        with self._lock:
            known = self.drafts.get((table, name))
            if known is None or known.is_saved:
                found = self._begun(table, name)
                if known is None or known.policy != found.policy:
                    self.drafts[table, name] = found
            return self.drafts[table, name]

    def unsaved(self) -> set[str]:
        """Return the tables with a draft that is not stored."""
        with self._lock:
            return {table for (table, _), draft in self.drafts.items() if not draft.is_saved}

    def _begun(self, table: str, name: str) -> Draft:
        stored = self.stored(table, name)
        if stored is None:
            suggested = policy_of_profile(self.profile(table))
            return Draft([replace(suggested, name=name)], None)
        return Draft([stored], stored)

    def stored(self, table: str, name: str) -> Policy | None:
        """Return the stored policy, None if there is none."""
        with suppress(PolicyError):
            return load_policy(table, name=name, settings=self.settings)
        return None

    def saved(self, table: str, name: str, stored: Policy) -> None:
        """Note that a draft was stored, under its name or another."""
        with self._lock:
            draft = self.drafts.pop((table, name), None) or Draft([stored], stored)
            draft.change(stored)
            draft.stored = stored
            self.drafts[table, stored.name] = draft
