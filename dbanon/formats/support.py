"""The features that each mode refuses, with reasons: the only table of its kind.

A feature without a row works in every mode. A row lists the modes that refuse its feature, with a
reason for each. ``formats.finders`` has the parts of a request, and how features are found in them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from dbanon.domain.errors import ConfigError, DbanonError, PolicyError
from dbanon.domain.policy import FULL_DOMAIN, GLOBAL, PAIRS, Policy, Role
from dbanon.domain.release import Release
from dbanon.domain.table import TableInfo
from dbanon.formats import finders as find
from dbanon.formats.finders import RowCounts, TableRequest, UntrackedRows
from dbanon.models.base import Scope
from dbanon.models.registry import MODELS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dbanon.formats.finders import Finder, Parts


MOST_STORED = 60
"""The number of sensitive columns of which a place stores if they changed, one bit each."""


class Mode(StrEnum):
    """Way to publish, search or examine a release."""

    VIEW = "live view"
    BUCKETS = "anatomy"
    DATASET = "dataset"
    PERSONS = "persons of a dataset"
    """The table of a dataset whose key names the persons."""
    LINKED = "rows of persons"
    """Any other table of a dataset."""
    BLOCKS = "blocks"
    COMPARISON = "comparison"
    APART = "kept values"
    """Rows of each value that is kept are grouped apart."""
    FRAME = "data frame"
    PLAN = "plan of a publication"
    FORECAST = "plan of a refresh"
    COUNTS = "counts with noise"
    REPORT = "report"
    REPORT_TOGETHER = "report of a dataset"
    ATTACK = "attack"
    ATTACK_BOTH = "attack of two relations"
    CHECK_ALL = "check of all relations"
    CHECK_BUCKETS = "check of anatomy"
    REUSE = "reuse"
    """New classes are unions of those of earlier releases."""
    REFRESH = "refresh"
    """Classes stay, and new rows form classes of their own."""
    PLACES = "changed rows"
    """A refresh reads changed rows only, by the stored place of each row."""


@dataclass(frozen=True, slots=True)
class Reason:
    """The reason why a mode refuses a feature; hint and error replace those of the mode."""

    text: str
    hint: str | None = None
    error: type[DbanonError] = ConfigError


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature: how to find it in a request, and the modes that refuse it."""

    name: str
    find: Finder[Any]
    refused: Mapping[Mode, Reason]


_HINTS = {
    Mode.VIEW: "publish it with --as table",
    Mode.BLOCKS: "leave out --executor and --rows-per-block, and it is grouped in one piece",
}
_PREFIXES = {Mode.BLOCKS: "blocks of rows cannot be grouped apart: "}
_NONE_TO_HIDE_AMONG = (
    "anatomy publishes quasi-identifiers as they are, and whoever knows them finds the row and"
    " knows that somebody is in the table"
)
_OF_ONE_TABLE = "--{option} is about one table, and a dataset has several"
_OF_A_RELEASE = "--{option} is about a release, and a comparison of algorithms makes none"
_AS_IT_IS = "column {column} is published as it is by anatomy: leave"
_BY_QUASI = (
    "{} groups persons by their quasi-identifiers, and the policy of {{table}} publishes these as"
    " they are, by anatomy"
)
_BEYOND = "{model} looks beyond a class, and the rows of each value of {kept} are grouped apart"
_NO_KEEP = "leave keep or the model out"
_NO_ANATOMY = "take anatomy out of the policy, or: {publish}"
_OWN_SUBJECT = Reason(
    "the policy of {table} has a subject of its own, and in a dataset each of its rows is a person",
    "publish a view with one row a person, whose key names the person",
    PolicyError,
)
_OF_THE_LEDGER = Reason("goes alone: the ledger says what to check")
_OF_FIGURES = Reason("goes with --public and --json alone")


def reasons(mode: Mode, request: Parts) -> Iterator[str]:
    """Yield the reasons why a mode refuses a request."""
    for text, _, _ in _refusals(mode, request):
        yield text


def require(mode: Mode, request: Parts, **words: object) -> None:
    """Raise the error of the first feature that a mode refuses; words: further placeholders."""
    for text, hint, error in _refusals(mode, request, **words):
        raise error(text, hint=hint)


def _refusals(
    mode: Mode, request: Parts, **more: object
) -> Iterator[tuple[str, str | None, type[DbanonError]]]:
    known = {**find.known(request), **more}
    for feature in FEATURES:
        reason = feature.refused.get(mode)
        if reason is None:
            continue
        hint = reason.hint or _HINTS.get(mode)
        for found in feature.find(request):
            words = {**known, **found}
            text = _PREFIXES.get(mode, "") + reason.text.format(**words)
            yield text, None if hint is None else hint.format(**words), reason.error


FEATURES: tuple[Feature, ...] = (
    Feature(
        "a live view (--as view)",
        find.option("view"),
        {
            Mode.DATASET: Reason(
                "a live view cannot keep persons alike in several tables",
                "publish the dataset with --as table",
            ),
            Mode.REUSE: Reason("a live view changes with its source"),
            Mode.REFRESH: Reason("it is live"),
            Mode.PLACES: Reason("it is live"),
        },
    ),
    Feature(
        "several tables (--dataset)",
        find.option("dataset"),
        {
            Mode.REUSE: Reason("the persons of a dataset are grouped for all of its tables"),
            Mode.PLACES: Reason("the tables of a dataset are read together"),
        },
    ),
    Feature(
        "--name",
        find.option("name"),
        {
            Mode.DATASET: Reason(_OF_ONE_TABLE, "--schema"),
            Mode.COMPARISON: Reason(_OF_A_RELEASE, "leave it out"),
        },
    ),
    Feature(
        "--subject, --population",
        find.option("subject", "population"),
        {Mode.DATASET: Reason(_OF_ONE_TABLE, "write it into the policy of the table")},
    ),
    Feature(
        "--series",
        find.option("series"),
        {
            Mode.VIEW: Reason("a live view is of no series", "--as table, or no --series"),
            Mode.DATASET: Reason(
                _OF_ONE_TABLE,
                "leave it out, or for other readers: --new-series --recipients-changed",
            ),
            Mode.COMPARISON: Reason(_OF_A_RELEASE, "leave it out"),
        },
    ),
    Feature(
        "--new-series, --recipients-changed, --strict, --schema, --grant, --print-sql",
        find.option("new_series", "recipients_changed", "strict", "schema", "grants", "print_sql"),
        {Mode.COMPARISON: Reason(_OF_A_RELEASE, "leave it out")},
    ),
    Feature(
        "--algorithm",
        find.option("algorithm"),
        {
            Mode.COMPARISON: Reason(
                "--algorithm names one search, and a comparison has several",
                "--algorithms NAME,NAME",
            )
        },
    ),
    Feature(
        "--executor, --rows-per-block",
        find.option("executor", "rows_per_block"),
        {
            Mode.DATASET: Reason(
                "the tables of a dataset are grouped together, and not in blocks",
                "leave out --executor and --rows-per-block",
            ),
            Mode.REUSE: Reason(
                "the next release of {table} reuses the classes of earlier ones, which requires"
                " all rows at once",
                "leave out --executor and --rows-per-block; or if the audience has never seen"
                " these: --new-series --recipients-changed",
            ),
        },
    ),
    Feature(
        "another policy or search of a plan",
        find.option("file", "compare", "algorithms", "ks", "plot"),
        {
            Mode.DATASET: Reason(
                "--{option} is about one policy, and each table of a dataset has its own",
                "leave it out, or name one table",
            )
        },
    ),
    Feature(
        "--html",
        find.option("html"),
        {
            Mode.DATASET: Reason(_OF_ONE_TABLE, "dbanon plan TABLE --html FILE"),
            Mode.REPORT_TOGETHER: _OF_FIGURES,
        },
    ),
    Feature("--against", find.option("against"), {Mode.REPORT_TOGETHER: _OF_FIGURES}),
    Feature(
        "one relation",
        find.option("relation"),
        {Mode.REPORT_TOGETHER: _OF_FIGURES, Mode.CHECK_ALL: _OF_THE_LEDGER},
    ),
    Feature(
        "--k, --l, --quasi, --sensitive of a check",
        find.option("k", "l", "quasi", "sensitive"),
        {
            Mode.CHECK_ALL: _OF_THE_LEDGER,
            Mode.CHECK_BUCKETS: Reason(
                "{relation} promises the values of its buckets by anatomy, and nothing else",
                "{check}",
            ),
        },
    ),
    Feature(
        "--as of an attack",
        find.option("attacker"),
        {Mode.ATTACK_BOTH: Reason("goes without --as: who has both is one attacker")},
    ),
    Feature(
        "--allow-superuser",
        find.option("allow_superuser"),
        {Mode.PLAN: Reason("goes with --refresh")},
    ),
    Feature(
        "what a refresh repeats, or no table",
        find.where(frozenset, find.not_of_forecast),
        {Mode.FORECAST: Reason("takes a table: all else is as it was asked for last time")},
    ),
    Feature(
        "anatomy",
        find.policy(lambda policy: policy.anatomy),
        {
            Mode.VIEW: Reason(
                "a live view cannot keep buckets: quasi-identifiers are published as they are, so"
                " that whoever sees one value go when one row goes knows whose it was"
            ),
            Mode.DATASET: Reason(_BY_QUASI.format("a dataset"), _NO_ANATOMY),
            Mode.BLOCKS: Reason("anatomy deals sensitive values to the buckets of the whole table"),
            Mode.COMPARISON: Reason(_BY_QUASI.format("every algorithm"), _NO_ANATOMY),
            Mode.REUSE: Reason("a bucket publishes the exact quasi-identifiers of its persons"),
            Mode.REFRESH: Reason("its buckets are dealt from all rows"),
            Mode.PLACES: Reason("its buckets are dealt from all rows"),
            Mode.ATTACK: Reason(
                "{relation} is published by anatomy, which shows exact quasi-identifiers and"
                " the bucket of each row",
                "{check}",
            ),
        },
    ),
    Feature(
        "a release together with other tables",
        find.Finder(Release, find.together),
        {
            Mode.REPORT: Reason(
                "{relation} was published together with {others}, in which its persons have rows,"
                " too: a report of it alone would leave out what these tell of them",
                "dbanon report --dataset FILE",
            )
        },
    ),
    Feature(
        "a release with the quasi-identifiers of another table",
        find.Finder(Release, find.of_others),
        {
            Mode.ATTACK: Reason(
                "{relation} shows its rows with the quasi-identifiers of {persons}",
                "what is served of {persons}: dbanon release list names it",
            )
        },
    ),
    Feature(
        "a source that is no table",
        find.table(lambda info: not info.is_table),
        {
            Mode.VIEW: Reason(
                "{source} is no table, and guards of a live view can only stand on one"
            ),
            Mode.BLOCKS: Reason(
                "{source} is no table, and may have other rows each time that it is read"
            ),
        },
    ),
    Feature(
        "a source with foreign parts",
        find.table(lambda info: info.foreign),
        {Mode.BLOCKS: Reason("{source} has foreign parts, which are not read on one snapshot")},
    ),
    Feature(
        "rows that change without a statement",
        find.Finder(UntrackedRows, lambda found: [asdict(found)]),
        {Mode.VIEW: Reason("{part} {why}, which the guards of a live view would not see")},
    ),
    Feature(
        "foreign partitions",
        find.Finder(TableInfo, find.foreign_leaf),
        {
            Mode.VIEW: Reason(
                "{part} is a foreign partition, whose changes a live view would not see"
            )
        },
    ),
    Feature(
        "tables that inherit from the source",
        find.table(lambda info: info.relkind != "p" and info.has_children),
        {Mode.VIEW: Reason("{source} has children, whose changes a live view would not see")},
    ),
    Feature(
        "a parent of the source",
        find.table(lambda info: info.has_parents),
        {
            Mode.VIEW: Reason(
                "{source} has a parent, and a live view would not see what is changed through it",
                "publish the parent, or this with --as table",
            )
        },
    ),
    Feature(
        "key",
        find.policy(lambda policy: policy.key),
        {
            Mode.VIEW: Reason(
                "a live view needs rows told apart at every moment, and the key of the policy is"
                " proved of those that were read",
                "leave key out of the policy if the table has a primary key, or publish with"
                " --as table",
            ),
            Mode.PLACES: Reason(
                "rows are identified by the key of the policy, and not by a primary key"
            ),
        },
    ),
    Feature(
        "where",
        find.policy(lambda policy: policy.where),
        {
            Mode.VIEW: Reason(
                "a live view cannot keep where: a row that no longer meets a condition would stay"
            )
        },
    ),
    Feature(
        "masking",
        find.policy(lambda policy: policy.masking),
        {
            Mode.VIEW: Reason("a live view shows values as they are, and the policy masks some"),
            Mode.BLOCKS: Reason("masking changes values by those of all rows"),
            Mode.PLACES: Reason("masked values are not those of the table"),
        },
    ),
    Feature(
        "masking that depends on other rows",
        find.where(TableRequest, lambda request: any(method.whole for method in request.methods())),
        {Mode.REFRESH: Reason("what becomes of its masked values depends on all rows")},
    ),
    Feature(
        "masking within classes",
        find.where(
            TableRequest, lambda request: any(method.within_class for method in request.methods())
        ),
        {Mode.REUSE: Reason("its values are masked within the classes")},
    ),
    Feature(
        "masking of a quasi-identifier",
        find.quasi(lambda rule, policy: policy.masked(rule.column)),
        {Mode.BUCKETS: Reason(f"{_AS_IT_IS} its masking out")},
    ),
    Feature(
        "pseudonym",
        find.Finder(Policy, find.pseudonym),
        {
            Mode.BUCKETS: Reason(
                "pseudonym {column} would tell by two releases who was in which buckets: leave out"
                " anatomy"
            ),
            Mode.VIEW: Reason(
                "a live view cannot keep pseudonyms: whoever sees one go when somebody leaves knows"
                " whose it was"
            ),
            Mode.PLACES: Reason("pseudonyms are made of all rows"),
        },
    ),
    Feature(
        "sample",
        find.policy(lambda policy: policy.sample is not None),
        {
            Mode.VIEW: Reason(
                "a live view cannot keep a sample: a row that is given to another person would stay"
            ),
            Mode.BLOCKS: Reason("a sample is drawn of all persons"),
            Mode.PLACES: Reason("its sample is drawn of all persons"),
        },
    ),
    Feature(
        "a subject that is not the key",
        find.where(TableRequest, lambda request: not request.policy.is_one_row(request.info)),
        {
            Mode.PLACES: Reason("its persons may have several rows"),
            Mode.COUNTS: Reason(
                "persons may have several rows of {source}, and the noise hides one row",
                "count the table of the persons, or a view with one row a person",
                PolicyError,
            ),
        },
    ),
    Feature(
        "a subject other than the key",
        find.where(
            TableRequest,
            lambda request: request.policy.subject not in {None, *request.info.primary_key},
        ),
        {Mode.PERSONS: _OWN_SUBJECT},
    ),
    Feature(
        "no subject",
        find.policy(lambda policy: policy.subject is None),
        {
            Mode.LINKED: Reason(
                "the policy of {table} does not say which column names the person",
                'subject = "column" in its policy',
                PolicyError,
            )
        },
    ),
    Feature(
        "another number of key columns than one",
        find.table(lambda info: len(info.primary_key) != 1),
        {
            Mode.PERSONS: Reason(
                "{source} needs a key of one column, by which the other tables name persons",
                "name the table of the persons first, or a view of it with key = [...]",
            )
        },
    ),
    Feature(
        "class_label, population",
        find.keys("class_label", "population"),
        {Mode.PLACES: Reason("{key} needs all rows")},
    ),
    Feature(
        "a primary key that texts do not tell apart",
        find.table(
            lambda info: not all(c.is_equal_by_text for c in map(info.column, info.primary_key))
        ),
        {Mode.PLACES: Reason("equal values of its primary key may have several texts")},
    ),
    Feature(
        "more sensitive columns than a place stores",
        find.policy(lambda policy: len(policy.with_role(Role.SENSITIVE)) > MOST_STORED),
        {Mode.PLACES: Reason(f"it has more than {MOST_STORED} sensitive columns")},
    ),
    Feature(
        "rows_per_subject other than 1",
        find.policy(lambda policy: policy.rows_per_subject not in {None, 1}),
        {
            Mode.VIEW: Reason(
                "a live view cannot keep rows_per_subject: when a row of a person goes, the person"
                " is no longer like the others of its class, and no guard would see that",
                "publish one row of each (--rows-per-subject 1), or with --as table",
            )
        },
    ),
    Feature(
        "rows_per_subject",
        find.policy(lambda policy: policy.rows_per_subject is not None),
        {
            Mode.BLOCKS: Reason("rows_per_subject looks at all rows of a person"),
            Mode.REUSE: Reason("which rows of a person are shown is drawn again"),
            Mode.PERSONS: _OWN_SUBJECT,
        },
    ),
    Feature(
        "a subject that may be NULL",
        find.Finder(TableRequest, find.nullable_subject),
        {
            Mode.VIEW: Reason(
                "subject column {column} of {source} may become NULL while a live view shows it,"
                " and NULL counts as no person",
                "publish it with --as table, or make the column NOT NULL",
            )
        },
    ),
    Feature(
        "persons with several rows",
        find.where(RowCounts, lambda counted: counted.rows != counted.persons),
        {
            Mode.BLOCKS: Reason("some persons have several rows, which may lie in several blocks"),
            Mode.BUCKETS: Reason(
                "some person has several rows, and anatomy publishes the quasi-identifiers of each"
                " as they are: whoever knows them finds all buckets of the person, and what these"
                " share",
                "publish a view with one row a person, or leave anatomy out",
                PolicyError,
            ),
        },
    ),
    Feature(
        "persons with several rows, by a model that guards count by rows",
        find.Finder(RowCounts, find.by_rows),
        {
            Mode.VIEW: Reason(
                "{table} has {rows} rows of {persons} subjects ({subject}), and a live view counts"
                " rows, not persons, for {model}"
            )
        },
    ),
    Feature(
        "another number of sensitive columns than one",
        find.Finder(Policy, find.n_sensitive),
        {
            Mode.BUCKETS: Reason(
                "anatomy publishes the values of one sensitive column, and there are {number}:"
                " buckets that are diverse in each say nothing of two together"
            )
        },
    ),
    Feature(
        "other models than l-diversity",
        find.Finder(Policy, find.more_than_l),
        {Mode.BUCKETS: Reason(f"{_NONE_TO_HIDE_AMONG}: it cannot promise {{name}}, but l alone")},
    ),
    Feature(
        "rows_per_subject, population",
        find.keys("rows_per_subject", "population"),
        {Mode.BUCKETS: Reason(f"{_NONE_TO_HIDE_AMONG}: {{key}} has no meaning with it")},
    ),
    Feature(
        "algorithm, params, block, max_suppressed",
        find.keys("algorithm", "params", "block", "max_suppressed"),
        {Mode.BUCKETS: Reason("anatomy deals all persons into buckets at random: leave {key} out")},
    ),
    Feature(
        "labels",
        find.policy(lambda policy: policy.labels),
        {
            Mode.BUCKETS: Reason("anatomy publishes no labels: leave labels out"),
            Mode.REFRESH: Reason("its labels are those of all classes"),
        },
    ),
    Feature(
        "columns with the names that anatomy adds",
        find.Finder(Policy, find.taken),
        {
            Mode.BUCKETS: Reason(
                "column {column} has the name of one that anatomy adds: rename it in a view"
            )
        },
    ),
    Feature(
        "any key of a quasi-identifier",
        find.quasi(find.coarser),
        {Mode.BUCKETS: Reason(f"{_AS_IT_IS} out all but its role")},
    ),
    Feature(
        "--keep-assignment",
        find.option("keep_assignment"),
        {
            Mode.COMPARISON: Reason(_OF_A_RELEASE, "leave it out"),
            Mode.REFRESH: Reason("its assignment is kept, which is that of all rows"),
        },
    ),
    Feature(
        "keep",
        find.quasi(lambda rule, _: rule.keep),
        {
            Mode.BLOCKS: Reason(
                "the rows of each value of {column} are grouped apart already (keep)"
            )
        },
    ),
    Feature(
        "recoding global or full-domain",
        find.quasi(lambda rule, _: rule.recoding in {GLOBAL, FULL_DOMAIN}),
        {
            Mode.BLOCKS: Reason(
                "recoding {recoding!r} of {column} publishes one grid for all classes"
            ),
            Mode.REFRESH: Reason("the grid of {column} is that of all classes"),
        },
    ),
    Feature(
        "restore_variance",
        find.quasi(lambda rule, _: rule.restore_variance),
        {
            Mode.BLOCKS: Reason("restore_variance of {column} takes the variance of all rows"),
            Mode.REFRESH: Reason("the variance of {column} is that of all classes"),
        },
    ),
    Feature(
        "a range in two columns",
        find.quasi(lambda rule, _: rule.recoding in PAIRS),
        {
            Mode.REFRESH: Reason("{column} is published in two columns"),
            Mode.FRAME: Reason(
                "{recoding} is two columns of a published relation, and a data frame keeps one",
                "choose interval or interval-text",
                PolicyError,
            ),
        },
    ),
    Feature(
        "a model of how columns occur together",
        find.models(lambda spec, _: MODELS[spec.name].scope is Scope.LINKS),
        {Mode.BLOCKS: Reason("{model} looks at how columns occur together in all rows")},
    ),
    Feature(
        "a model that counts a population",
        find.models(lambda spec, _: MODELS[spec.name].scope is Scope.POPULATION),
        {
            Mode.BLOCKS: Reason("{model} counts a population"),
            Mode.APART: Reason(_BEYOND, _NO_KEEP, PolicyError),
        },
    ),
    Feature(
        "a model that looks at the classes around",
        find.models(lambda spec, _: MODELS[spec.name].is_around),
        {Mode.BLOCKS: Reason("{model} compares a class with all classes around it")},
    ),
    Feature(
        "a model that a union of classes may fail",
        find.models(lambda spec, _: not MODELS[spec.name].is_monotone),
        {Mode.BLOCKS: Reason("{model} may not hold of a class that has rows of several blocks")},
    ),
    Feature(
        "a model that compares with all rows",
        find.models(lambda spec, _: MODELS[spec.name].of_whole),
        {
            Mode.VIEW: Reason(
                "a live view cannot keep {model}: any write changes the whole that its classes are"
                " compared with",
                "publish it with --as table, and again with: {refresh}",
            ),
            Mode.DATASET: Reason(
                "{model} looks beyond the classes of one table, and those of a dataset are grouped"
                " apart",
                "leave it out of the policy of {table}, or publish that alone",
                PolicyError,
            ),
            Mode.APART: Reason(_BEYOND, _NO_KEEP, PolicyError),
            Mode.REFRESH: Reason("{name} compares classes with what lies outside of them"),
        },
    ),
    Feature(
        "a model that compares with all rows, with max_suppressed",
        find.models(find.beyond_blocks),
        {
            Mode.BLOCKS: Reason(
                "{model} compares with all rows that are shown, and with max_suppressed nobody"
                " knows them before the last block"
            )
        },
    ),
    Feature(
        "a model proved of all rows of a person, with a subject",
        find.Finder(TableRequest, find.of_persons),
        {Mode.REFRESH: Reason("{name} is proved of all rows of a person")},
    ),
    Feature(
        "a column that is generated on reading",
        find.Finder(TableRequest, find.virtual),
        {
            Mode.VIEW: Reason(
                "column {column} is generated on reading, and the guards of a live view would not"
                " see it change",
                "make it STORED, or publish with --as table",
            )
        },
    ),
)
"""Every feature that some mode refuses, in the order in which it is looked for."""
