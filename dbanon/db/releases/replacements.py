"""Made-up values that are published instead of direct identifiers."""

from __future__ import annotations

import re
import secrets
import unicodedata
from typing import TYPE_CHECKING, NamedTuple, Protocol

from psycopg import sql
from psycopg.types.json import Jsonb

from dbanon.db import identity
from dbanon.db.queries import query, relation, template
from dbanon.domain.errors import ConfigError, PolicyError, require_library
from dbanon.domain.release import CheckFailed, CheckReport
from dbanon.domain.table import quote_identifier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from uuid import UUID

    from dbanon.db.session import Session
    from dbanon.domain.policy import ColumnRule, Policy
    from dbanon.domain.table import TableName


class Replaced(Protocol):
    """The parts of a publication on which made-up values depend; see ``Publication``."""

    @property
    def policy(self) -> Policy:
        """The policy, with the columns to replace."""

    @property
    def key(self) -> UUID | None:
        """The hash key of the persons."""

    @property
    def view(self) -> TableName:
        """The published relation."""

    @property
    def reading(self) -> sql.Composable:
        """The source."""

    @property
    def release(self) -> sql.Identifier:
        """The private copy."""


_PATTERNS = {"phone": "+999 ### ### ######"}  # a country code that no country has


class Words(NamedTuple):
    """Words of Faker: their methods, and the first of the two bytes of a hash that choose one."""

    first: int
    parts: tuple[str, ...]


# One word more than is usual, so that later rows hardly ever bring one of these values.
WORDS = {
    "first_name": Words(2, ("first_name",)),
    "last_name": Words(4, ("last_name",)),
    "city": Words(6, ("city",)),
    "street": Words(8, ("street_address",)),
    "company": Words(10, ("last_name", "company")),
    "iban": Words(12, ("iban",)),
}
NAME = ("first_name", "last_name")
"""Words of which a name, a user name and an e-mail address consist."""
ADDRESSES = {"user_name": (16, ""), "email": (23, "@example.org")}
"""First of the five bytes of a hash whose digits follow the name in an address, and its end."""
N_WORDS = 8192  # which 13 bits of a hash number
_LONGEST = 20  # characters of a name in an address
_SCARCE = 100  # codes of a pattern for each pair of a person and a value of that form
_CHARACTERS = {"#": "mod(get_byte(c.hash, {}), 10)", "?": "chr(65 + mod(get_byte(c.hash, {}), 26))"}
_FORMS = {"#": "[0-9]", "?": "[a-z]"}
_CHOICES = {"#": 10, "?": 26}


def pattern_of(rule: ColumnRule) -> str | None:
    """Return the pattern of a column, None if it has words."""
    kind = rule.replace or ""
    return _PATTERNS.get(kind) or (kind[5:] if kind.startswith("code:") else None)


def kinds_of(policy: Policy) -> dict[str, list[ColumnRule]]:
    """Return the lists of words that a policy needs, with the columns that publish a word alone."""
    found: dict[str, list[ColumnRule]] = {}
    for rule in policy.replaced:
        name = rule.replace or ""
        if pattern_of(rule) is None:
            for kind in (name,) if name in WORDS else NAME:
                found.setdefault(kind, []).extend([rule] if name == kind else [])
    return found


def made_up(policy: Policy, rule: ColumnRule, key: UUID | None) -> sql.Composable:
    """Compose the made-up value of a column, from the hash of the person."""
    name, pattern = rule.replace or "", pattern_of(rule)
    if pattern is not None:
        kind = sql.Literal(name)
        characters = sql.SQL(", ").join(_characters(pattern))
        return template("releases.replacement_code", characters=characters, kind=kind)
    if name in WORDS:
        return _word(name, policy, key)
    start, end = ADDRESSES.get(name, (None, ""))
    words = [_word(kind, policy, key, in_address=start is not None) for kind in NAME]
    if start is None:
        return sql.SQL("{} || ' ' || {}").format(*words)
    spelled = sql.SQL("{} || '.' || {} || '.' || encode(substr(p.hash, {}, 5), 'hex') || {}")
    return spelled.format(*words, start + 1, end)


def _word(
    kind: str, policy: Policy, key: UUID | None, *, in_address: bool = False
) -> sql.Composable:
    first = WORDS[kind].first
    slots = {"first": first, "second": first + 1, "key": key, "kind": _stored(kind, policy)}
    literals = {slot: sql.Literal(value) for slot, value in slots.items()}
    offset = sql.Literal(N_WORDS if in_address else 0)
    return template("releases.replacement_word", offset=offset, **literals)


def _stored(kind: str, policy: Policy) -> str:
    return f"{kind}/{policy.locale}"


def _characters(pattern: str) -> Iterator[sql.Composable]:
    for i, character in enumerate(pattern):
        form = _CHARACTERS.get(character, "{}")
        yield sql.SQL(form).format(sql.Literal(i if character in _CHARACTERS else character))


def possible(
    publication: Replaced, rule: ColumnRule, form: Callable[[sql.Composable], sql.Composable]
) -> sql.Composable:
    """Compose the test if a source value may be a replacement; form: that of ``word_form``."""
    name, pattern = rule.replace or "", pattern_of(rule)
    value, word = form(source_text(rule)), form(sql.Identifier("e", "word"))
    shape = re.sub("[#?%\\\\]", "_", pattern or "").strip()
    if name in ADDRESSES:
        shape = f"%.{10 * '_'}{ADDRESSES[name][1]}"
    if shape:
        return sql.SQL("{} LIKE {}").format(value, form(sql.Literal(shape)))
    if name == "name":  # begins like the first name
        value, word = (sql.SQL("split_part({}, ' ', 1)").format(one) for one in (value, word))
    kind = sql.Literal(_stored(NAME[0] if name == "name" else name, publication.policy))
    slots = {"key": sql.Literal(publication.key), "kind": kind}
    return template("releases.possible_word", value=value, form=word, **slots)


def source_text(rule: ColumnRule) -> sql.Composed:
    """Compose the text of a column of the source."""
    return sql.SQL("s.{}::text").format(sql.Identifier(rule.column))


def require_words(
    session: Session, publication: Replaced, others: Mapping[TableName, Policy]
) -> None:
    """Draw and store the words that the key of a release lacks, none of them a real value.

    others: the tables of a dataset, whose values are no words either. Raises PolicyError for a
    pattern with too few codes.
    """
    for rule in publication.policy.replaced:
        _require_room(session, publication, rule)
    needed = kinds_of(publication.policy)
    if not needed:
        return
    known = session.pg.execute(query("releases.replacement_words"), {"key": publication.key})
    stored = {kind for (kind,) in known}
    for kind in sorted(needed):
        if _stored(kind, publication.policy) not in stored:
            columns = [(rule, publication.reading) for rule in needed[kind]]
            for name, policy in others.items():
                columns += [(rule, relation(name)) for rule in kinds_of(policy).get(kind, ())]
            words = _draw(session, publication.policy.locale, kind, columns=columns)
            row = {"key": publication.key, "kind": _stored(kind, publication.policy)}
            session.pg.execute(
                query("releases.store_replacement_words"), row | {"words": Jsonb(words)}
            )


def _require_room(session: Session, publication: Replaced, rule: ColumnRule) -> None:
    """Raise PolicyError if a code of a pattern is probably a value of its column.

    A code is such a value with the probability values / codes, so that none is expected below
    persons x values codes.
    """
    pattern = pattern_of(rule)
    if pattern is None:
        return
    form = word_form(session)
    shape = "".join(_FORMS.get(one, re.escape(one)) for one in pattern.strip().lower())
    statement = template(
        "releases.values_of_pattern",
        value=form(source_text(rule)),
        possible=possible(publication, rule, form),
        shape=sql.Literal(f"^{shape}$"),
        source=publication.reading,
    )
    rows, values = identity.harmless(session, statement).fetchone() or (0, 0)
    codes = 1
    for character in pattern:
        codes *= _CHOICES.get(character, 1)
    needed = _SCARCE * rows * values
    if codes < needed:
        name = quote_identifier(rule.column)
        raise PolicyError(
            f"column {name}: {rule.replace} has {codes:,} codes, and {values:,} values of the"
            f" column have its form: {rows:,} rows need {needed:,}",
            hint=f'a longer pattern, or another form: replace = "code:X-{"#" * 10}"',
        )


def _draw(
    session: Session,
    locale: str,
    kind: str,
    *,
    columns: Iterable[tuple[ColumnRule, sql.Composable]],
) -> list[str]:
    """Draw the words of a kind, and of names how addresses spell them; pairs if there are too few.

    columns: with their relations, whose values are no words.
    """
    require_library("faker", what=f'replace = "{kind}"')
    from faker.factory import Factory

    try:
        fake = Factory.create(locale)
    except AttributeError:
        raise PolicyError(f"Faker has no locale {locale}", hint='locale = "de_DE"') from None
    fake.random = secrets.SystemRandom()
    form = word_form(session)
    for times in (1, 2, 3):
        parts = [getattr(fake, part) for part in WORDS[kind].parts] * times
        drawn = {
            ("-" if times > 1 else " ").join(draw() for draw in parts)
            for _ in range(N_WORDS * 5 // 4)
        }
        for rule, source in columns:
            statement = template(
                "releases.real_values",
                value=form(source_text(rule)),
                form=form(sql.Identifier("e", "word")),
                source=source,
                words=sql.Literal([*drawn]),
            )
            drawn.difference_update(word for (word,) in identity.harmless(session, statement))
        if len(drawn) >= N_WORDS:
            words = sorted(drawn)
            secrets.SystemRandom().shuffle(words)
            words = words[:N_WORDS]
            return [*words, *map(spell, words)] if kind in NAME else words
    raise ConfigError(
        f"Faker has too few values of kind {kind} that the table does not have",
        hint='replace = "code:??????"',
    )


def spell(word: str) -> str:
    """Return a name in letters from a to z, as in an e-mail address."""
    plain = unicodedata.normalize("NFKD", word.casefold())
    return re.sub("[^a-z]", "", plain)[:_LONGEST] or "user"


def word_form(session: Session) -> Callable[[sql.Composable], sql.Composable]:
    """Return how to compose the form of a text that all spellings of a word have."""
    ((folding, has_forms),) = session.pg.execute(query("releases.word_folding"))

    def form(text: sql.Composable) -> sql.Composable:
        text = template("releases.composed_word", text=text) if has_forms else text
        return template("releases.word_form", text=text, folding=sql.Identifier(folding))

    return form


def require_made_up(session: Session, publication: Replaced) -> None:
    """Raise CheckFailed if a replacement is missing, or a value of its column in the source."""
    if not publication.policy.replaced:
        return
    form = word_form(session)
    for rule in publication.policy.replaced:
        own = sql.Identifier("r", rule.column)
        statement = template(
            "releases.real_replacements",
            value=form(source_text(rule)),
            own=own,
            replacement=form(own),
            source=publication.reading,
            release=publication.release,
            possible=possible(publication, rule, form),
        )
        real, missing = identity.harmless(session, statement).fetchone() or (0, 0)
        name = quote_identifier(rule.column)
        if missing:
            raise _failed(
                publication,
                f"{missing:,} rows have no replacement of column {name}:"
                " the words in dbanon.replacement are damaged",
                hint="restore dbanon.replacement from a backup; or draw new words:"
                " --new-series --recipients-changed",
            )
        if real:
            raise _failed(
                publication,
                f"{real:,} replacements of column {name} are values of the table",
                hint="dbanon publish --new-series --recipients-changed draws others",
            )


def _failed(publication: Replaced, problem: str, *, hint: str) -> CheckFailed:
    message = f"{publication.view}: {problem}; nothing was published"
    return CheckFailed(message, CheckReport(publication.view, ()), hint=hint)
