"""README and docs/ are held to the code: what they say to type exists, and what exists is there."""

import ast
import re
import shlex
from dataclasses import MISSING, fields
from pathlib import Path
from types import ModuleType

import generated
import pytest
import typer
from pages import PAGES, ROOT, SITE, TEXT, WRITTEN, blocks, page
from typer.main import get_command

import dbanon
from dbanon.anonymization.interfaces import parameters
from dbanon.anonymization.registry import ALGORITHMS, MASKING, RECODINGS
from dbanon.cli import BROKEN_PIPE, INTERRUPTED, app
from dbanon.db.metadata.migrate import REVISION
from dbanon.db.releases.publication import published_type
from dbanon.domain.errors import DbanonError
from dbanon.domain.messages import MASKED
from dbanon.domain.notices import NOTICES
from dbanon.domain.policy import ColumnRule, Policy, Role, keys_of, meanings_of
from dbanon.domain.policy_warning import EXPLANATIONS, Code
from dbanon.domain.table import ColumnInfo, ColumnKind
from dbanon.formats import datasets, policies
from dbanon.models.registry import MODELS
from dbanon.settings import LIBPQ_VARIABLES

PACKAGE = Path(dbanon.__file__).parent
README = page("README.md")
POLICY = page("docs/reference/policy.md")
ALGORITHMS_PAGE = page("docs/reference/algorithms.md")
MODELS_PAGE = page("docs/reference/models.md")
FUNCTIONS_PAGE = page("docs/reference/sql-functions.md")
GUIDES = [guide for guide in SITE if guide.path.parent.name == "guides"]
LONGEST_README = 200
LONGEST_GUIDE = 150
FIRST_LINES = 20
ONE_LINERS = [
    f"python3 -m venv .venv && .venv/bin/pip install -e '.[{extras}]' && .venv/bin/{command}"
    for extras, command in (("embedded,report", "dbanon demo"), ("dev", "pytest"))
]
USAGE_ERROR = 2  # Click's own
PROGRAM = get_command(app)
UsageError = typer.BadParameter.__base__  # which Typer has of Click, and does not name


def simple_commands(text):
    """Split a shell script into its simple commands, each a list of words."""
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()")
        lexer.whitespace_split = True
        words = []
        for word in lexer:
            if set(word) <= set("|&;<>()"):
                yield words
                words = []
            else:
                words.append(word)
        yield words


def arguments_of_dbanon(words):
    """Return what a simple command hands to dbanon, None when it runs something else."""
    words = [word for word in words if not re.fullmatch(r"[A-Z_]+=.*", word)]
    names = [Path(word).name for word in words]
    if names[:1] == ["dbanon"]:
        return words[1:]
    if names[:1] == ["docker"] and "dbanon" in names[3:]:
        return words[names.index("dbanon", 3) + 1 :]
    return None


def leaves(command, path=("dbanon",)):
    for name, inner in getattr(command, "commands", {}).items():
        yield from leaves(inner, (*path, name))
    if not hasattr(command, "commands"):
        yield path, command


def parse(arguments):
    """Let the command line read the arguments, and run nothing."""
    command, rest, path = PROGRAM, list(arguments), ["dbanon"]
    while hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        path.append(rest.pop(0))
        command = command.commands.get(path[-1])
    if command is None:
        raise UsageError(f"no command {path[-1]}")
    try:
        command.make_context(" ".join(path), rest)
    except typer.Exit:  # --help and --version have answered
        return


SHELL = [
    arguments
    for text in blocks("sh")
    for words in simple_commands(text)
    if (arguments := arguments_of_dbanon(words)) is not None
]
SCHEDULED = [
    shlex.split(words)
    for text in [*blocks("text"), *blocks("ini")]
    for words in re.findall(
        r"^(?:[\d*/ ]+ publisher .*|ExecStart=.*)/dbanon (.+)$", text, re.MULTILINE
    )
] + [
    re.findall(r'"([^"]+)"', words)
    for text in blocks("yaml")
    for words in re.findall(r"^ *args: \[(.+)\]$", text, re.MULTILINE)
]
SPOKEN = sorted({words for page in PAGES for words in re.findall(r"`dbanon ([^`]+)`", page.prose)})


def test_the_readme_fits_one_look():
    assert len(README.written.splitlines()) <= LONGEST_README


def test_a_guide_has_at_most_150_lines():
    assert len(GUIDES) > 20
    lines = {guide.path.name: len(guide.written.splitlines()) for guide in GUIDES}
    assert {name: count for name, count in lines.items() if count > LONGEST_GUIDE} == {}


def test_a_guide_begins_with_an_example():
    begun = {guide.path.name: guide.written.splitlines()[:FIRST_LINES] for guide in GUIDES}
    assert [name for name, lines in begun.items() if "```" not in [n[:3] for n in lines]] == []


@pytest.mark.parametrize("line", ONE_LINERS)
def test_the_lines_to_start_with_stand_alone_in_a_block(line):
    assert f"{line}\n" in README.blocks("sh")


def complaints(commands, capsys):
    """Return what the command line says against each of the commands that it does not take."""
    found = {}
    for arguments in commands:
        try:
            parse(arguments)
        except UsageError as error:
            found[" ".join(arguments)] = error.format_message()
        if printed := capsys.readouterr().err:
            found[" ".join(arguments)] = printed
    return found


def test_every_command_of_a_block_is_one_that_the_program_takes(capsys):
    assert len(SHELL) > 100
    assert complaints([*SHELL, *SCHEDULED], capsys) == {}


def test_a_command_that_the_program_does_not_take_is_found(capsys):
    wrong = [["publish", "t", "--kk", "5"], ["pubish", "t"]]
    assert complaints([["publish", "t", "--k", "5"], *wrong], capsys).keys() == {
        "publish t --kk 5",
        "pubish t",
    }


def test_every_scheduler_is_shown_a_command():
    cron, systemd, kubernetes = ["refresh", "check", "doctor"], ["refresh", "check"], ["refresh"]
    assert [words[0] for words in SCHEDULED] == [*cron, "worker", *systemd, *kubernetes]


def test_every_option_that_asks_for_a_model_is_one_that_the_program_takes(capsys):
    asked = [["publish", "t", *shlex.split(words)] for words in generated.ASKED.values()]
    assert asked
    assert complaints(asked, capsys) == {}


def test_only_models_without_an_option_are_asked_for_in_a_policy_alone():
    alone = {*MODELS} - {*generated.ASKED}
    nested = {"pd-recursive-l-diversity", "npd-recursive-l-diversity"}
    assert alone == {"n-t-closeness", "k-e-anonymity", "listed-alpha-k-anonymity", *nested}


def exists(spoken):
    """Whether the program has the command of a sentence, with its options."""
    command, words = PROGRAM, spoken.split()
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    named = command is not PROGRAM or spoken.startswith("-")
    return named and {word for word in words if word.startswith("-")} <= known


def test_every_command_in_a_sentence_exists_with_its_options():
    assert len(SPOKEN) > 30
    assert [spoken for spoken in SPOKEN if not exists(spoken)] == []
    assert not exists("pubish")
    assert not exists("publish t --kk")


def test_every_command_of_the_program_is_shown_in_a_block():
    paths = [path[1:] for path, _ in leaves(PROGRAM)]
    assert len(paths) > 30
    assert [
        path for path in paths if not any(words[: len(path)] == [*path] for words in SHELL)
    ] == []


def test_every_option_of_a_command_is_named():
    options = {
        option
        for _, command in leaves(PROGRAM)
        for parameter in command.params
        for option in parameter.opts
        if option.startswith("--") and option != "--help"
    }
    # and not only in what --help prints
    explained = WRITTEN + generated.models() + generated.keys(Policy)
    assert {option for option in options if option not in explained} == set()


def test_the_policy_reference_has_every_key_and_no_other():
    found = {row[0].strip("`") for row in POLICY.rows("## Keys of the file")}
    assert found == {field.name for field in fields(Policy)}
    found = {row[0].strip("`") for row in POLICY.rows("## Keys of a column")}
    assert found == {field.name for field in fields(ColumnRule)} - {"column"}


@pytest.mark.parametrize("described", [Policy, ColumnRule])
def test_every_key_of_a_policy_says_what_it_means_and_what_holds_without_it(described):
    keys, meanings = keys_of(described), meanings_of(described)
    assert {field.name for field in fields(described)} - {"column"} == keys.keys()
    assert list(keys) == list(meanings)
    required = {field.name for field in fields(described) if is_required(field)} - {"column"}
    assert required == {name for name, (_, without) in meanings.items() if without == "required"}


def is_required(field):
    return field.default is MISSING and field.default_factory is MISSING


@pytest.mark.parametrize("text", blocks("toml"))
def test_every_policy_or_dataset_in_a_block_is_valid(text):
    if text.startswith("persons = "):
        assert datasets.parse(text).tables
        return
    policy = policies.parse(text, policies.Known(ALGORITHMS, MODELS, RECODINGS, MASKING))
    assert policy.with_role(Role.QUASI) or policy.subject


@pytest.mark.parametrize("text", blocks("python"))
def test_every_python_block_compiles_and_uses_public_names(text):
    compile(text, "a page", "exec")
    used = {
        node.attr
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "dbanon"
    }
    assert used != set()
    assert used - set(dbanon.__all__) == set()


def test_no_public_name_is_hidden_by_a_folder_of_that_name():
    assert RECODINGS  # so dbanon.anonymization.registry has been imported
    modules = [name for name in dbanon.__all__ if isinstance(getattr(dbanon, name), ModuleType)]
    assert modules == []


def test_every_masking_method_has_a_row_with_its_parameters():
    rows = page("docs/reference/masking.md").rows("# Masking")
    assert [row[0].strip("`") for row in rows] == list(MASKING) == list(MASKED)
    for row, method in zip(rows, MASKING.values(), strict=True):
        assert [name for name in parameters(method) if f"`{name}" not in row[3]] == []


@pytest.mark.parametrize("registry", [ALGORITHMS, MODELS, RECODINGS])
def test_every_registered_name_is_described(registry):
    assert [name for name in registry if f"`{name}`" not in TEXT] == []


@pytest.mark.parametrize(
    ("shown", "registry"), [(ALGORITHMS_PAGE, ALGORITHMS), (MODELS_PAGE, MODELS)]
)
def test_the_tables_are_those_of_the_registries(shown, registry):
    rows = shown.rows(shown.text.splitlines()[0])
    assert [row[0].split()[0] for row in rows] == [f"`{name}`" for name in registry]
    assert all(row[1] and "``" not in row[1] for row in rows)


def test_what_is_generated_has_one_place_each_and_is_not_tracked():
    marks = [mark for page in PAGES for mark in generated.MARK.findall(page.written)]
    assert sorted(marks) == sorted(generated.PARTS)
    assert [name for name, part in generated.PARTS.items() if part() in WRITTEN] == []


def test_every_check_function_is_described_and_every_described_one_exists():
    described = set(re.findall(r"^## dbanon\.(\w+)$", FUNCTIONS_PAGE.text, re.MULTILINE))
    assert {f"check_{name.replace('-', '_')}" for name in MODELS} < described
    assert set(re.findall(r"dbanon\.(check_\w+[a-z]|verify\w*)", WRITTEN)) <= described


def test_every_public_name_is_described():
    text = page("docs/reference/python.md").text
    assert [name for name in dbanon.__all__ if not re.search(rf"(### |`){name}\b", text)] == []


def test_the_defaults_of_a_policy_are_described():
    described = {row[0].strip("`"): row[2] for row in POLICY.rows("## Keys of the file")}
    policy = Policy(None, ())
    assert described["algorithm"] == f"`{policy.algorithm}`"
    assert described["max_suppressed"] == f"{policy.max_suppressed:g}"


def test_the_revision_that_is_shown_is_the_newest():
    assert {REVISION} == set(re.findall(r"schema installed \(revision (\w+)\)", WRITTEN))


def test_every_picture_is_there_and_shown():
    pictures = {
        (page.path.parent / name).resolve()
        for page in PAGES
        for name in re.findall(r"!\[[^]]+\]\(([^)]+)\)", page.written)
    }
    assert pictures == {*(ROOT / "docs").glob("*.svg"), *(ROOT / "docs").glob("*.png")}


def types_of(recoding, integer):
    """Return every type that a recoding publishes columns in, integers being of that width."""
    return {
        published_type(recoding, ColumnInfo("c", "", integer, kind))
        for kind in ColumnKind
        for taxonomy in (None, "tree")
        for structure in [ColumnRule("c", Role.QUASI, taxonomy=taxonomy).structure(kind)]
        if kind.can_be_quasi and structure in RECODINGS[recoding].accepts
    }


@pytest.mark.parametrize("recoding", sorted(RECODINGS))
def test_the_published_types_are_described(recoding):
    recodings = page("docs/reference/recodings.md").rows("# Recodings")
    rows = {cells[0].strip("`"): cells[2] for cells in recodings}
    described = set(re.findall(r"`([^`]+)`", rows[recoding]))
    assert types_of(recoding, "int4") <= described
    assert described <= types_of(recoding, "int4") | types_of(recoding, "int8")


def test_every_warning_is_explained():
    rows = page("docs/reference/warnings.md").rows("# Warnings")
    assert [f"`{code}`" for code in EXPLANATIONS] == [row[0] for row in rows]
    assert sorted(EXPLANATIONS) == sorted(Code)
    others = page("docs/reference/warnings.md").rows("## Releases, rights and metadata")
    assert [f"`{topic}`" for topic in NOTICES] == [row[0] for row in others]
    for cells in (*rows, *others):
        assert all(cells), cells[0]


def test_every_exit_code_is_described():
    def kinds(error):
        return {error}.union(*map(kinds, error.__subclasses__()))

    codes = {
        0,
        USAGE_ERROR,
        INTERRUPTED,
        BROKEN_PIPE,
        *(error.exit_code for error in kinds(DbanonError)),
    }
    rows = page("docs/reference/exit-codes.md").rows("# Exit codes and errors")
    assert {int(row[0]) for row in rows} == codes


def test_every_environment_variable_is_described():
    texts = [path.read_text("utf-8") for path in Path(dbanon.__file__).parent.rglob("*.py")]
    ours = {name for text in texts for name in re.findall(r"\"(DBANON_[A-Z_]+)\"", text)}
    assert ours != set()
    assert {name for name in {*ours, *LIBPQ_VARIABLES} if f"`{name}`" not in WRITTEN} == set()


def test_every_part_of_the_tree_has_its_place_in_the_architecture():
    parts = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    architecture = page("docs/development/architecture.md").written
    assert {part for part in parts if f"{part}/" not in architecture} == set()


def test_every_test_that_is_named_exists():
    files = list((ROOT / "tests").rglob("test_*.py"))
    defined = {
        node.name
        for path in files
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
    }
    named = set(re.findall(r"`(test_\w+)`", WRITTEN))
    assert len(named) > 10
    assert named - defined == set()
    paths = {ROOT / path for path in re.findall(r"`((?:tests|docs|docker)/\w[\w/.]*)", WRITTEN)}
    assert {path for path in paths if not path.exists()} == set()


def test_every_promise_names_its_tests():
    rows = page("docs/security/promises.md").rows("# Promises and the tests that keep them")
    assert [promise for promise, tests in rows if "test" not in tests] == []


def test_every_link_leads_somewhere():
    anchors = {page.path: page.anchors for page in PAGES}
    links = [
        (source.path, *link.partition("#")[::2])
        for source in PAGES
        for link in re.findall(r"\]\(([^)]+)\)", source.prose)
        if not link.startswith("https://")
    ]
    assert len(links) > 100
    broken = []
    for path, name, anchor in links:
        target = (path.parent / name).resolve() if name else path
        if not target.exists() or (anchor and anchor not in anchors[target]):
            broken.append((path.name, name, anchor))
    assert broken == []


def test_every_page_is_linked_from_readme():
    pages = [README, page("docs/development/decisions/index.md")]
    linked = {
        (one.path.parent / link).resolve()
        for one in pages
        for link in re.findall(r"\]\(([^)#]+)", one.written)
    }
    assert {page.path for page in SITE} - linked == {ROOT / "docs" / "index.md"}


def test_extending_names_files_and_names_that_exist():
    text = page("docs/development/extending.md").text
    words = {one for one in re.findall(r"`([^`\n]+)`", text) if not re.search(r"[<\s(]|\bx\.", one)}
    trees = [ROOT / name for name in ("dbanon", "tests", "docs", "sql", "migrations")]
    files = [f"/{path}" for tree in trees for path in tree.rglob("*")]
    paths = {one.rstrip("/") for one in words if one.endswith((".py", "/"))}
    assert {one for one in paths if not any(f.endswith(f"/{one}") for f in files)} == set()
    code = "\n".join(path.read_text("utf-8") for tree in trees for path in tree.rglob("*.py"))
    names = {one for one in words if re.fullmatch(r"[A-Z][A-Z_]+", one)} - {"NULL"}
    defined = set(re.findall(r"^\s*([A-Z][A-Z_]+)\b.* = ", code, re.MULTILINE))
    assert names - defined == set()
