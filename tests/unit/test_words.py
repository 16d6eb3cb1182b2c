"""Docstrings, pages, help and comments of SQL use the words of the field, and no private dialect.

A text has habits of phrasing that its readers have to translate; peers have 1 to 5 of these in
1,000 words. What is counted is not wrong in every place, so the bar is above none.
"""

import ast
import re
from pathlib import Path

import pytest
from builders import DATA

TREE = DATA.parents[1]
MOST = {"docstrings": 8, "pages": 8, "help": 3, "SQL": 8}
HABITS = {
    "verbs of speech": r"tells?|told|says?|said of",
    "persons instead of data": r"who(?:ever|m)?|nobody|somebody|anybody",
    "clauses for nouns": r"of what|by what|what (?:is|was|are|were|ha[sv]e?|it|they|readers)",
    "verbs of posture": r"stands?|stood|let go of|held against",
    "connectives": r"anew|beside|else|as far as|(?:as|so) many|by itself|in the stead",
    "where for if": r"where (?:a|an|it|they|there|that|one|none|some) (?:is|are|has|have)",
}
COUNTED = re.compile("|".join(rf"\b(?:{words})\b" for words in HABITS.values()), re.IGNORECASE)
CODE = re.compile(r"```.*?```|`[^`]*`|\(\S+?\)|^\|[^\n]*$|<!--.*?-->", re.DOTALL | re.MULTILINE)


def docstrings():
    """Yield the docstrings of the package."""
    for path in sorted((TREE / "dbanon").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                yield ast.get_docstring(node) or ""


def pages():
    """Yield the pages of the site without their code and tables."""
    for path in sorted((TREE / "docs").rglob("*.md")):
        yield CODE.sub(" ", path.read_text(encoding="utf-8"))


def help_texts():
    """Yield what ``--help`` prints of all commands."""
    yield Path(__file__).with_name("cli").joinpath("help.txt").read_text(encoding="utf-8")


def comments_of_sql():
    """Yield the comments of statements and functions, without their names."""
    for path in sorted((TREE / "sql").rglob("*.sql")):
        yield from re.findall(
            r"^ *-- (?!name:)(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE
        )


# Comments in bodies of functions of releases stay as they are: doctor compares the bodies.

TEXTS = {
    "docstrings": docstrings,
    "pages": pages,
    "help": help_texts,
    "SQL": comments_of_sql,
}


def found(text):
    """Return the number of words of a text, and the habits in it."""
    return len(re.findall(r"[A-Za-z']+", text)), COUNTED.findall(text)


def test_habits_are_found():
    words, habits = found("Tell whoever it is of what there were so many, and let them stand.")
    assert (14, 5) == (words, len(habits))


@pytest.mark.parametrize("kind", TEXTS)
def test_few_words_have_to_be_translated(kind):
    words, habits = found("\n".join(TEXTS[kind]()))
    assert words > 1000
    assert 1000 * len(habits) / words <= MOST[kind], sorted({habit.lower() for habit in habits})


# What was called otherwise once, and by which terms of the field it goes now.
RENAMED = {
    "anew": "from scratch, regrouped",
    "beside": "companions",
    "caution": "warning",
    "cautions": "warnings",
    "chapter": "history entry",
    "chapters": "history entries",
    "crowd": "candidate set",
    "dearest": "costliest",
    "deed": "commit outcome",
    "births": "inserted",
    "everybody": "population",
    "fate": "commit outcome",
    "growing": "incremental refresh",
    "judging": "assessment",
    "judgement": "proof table, results",
    "leavers": "deleted rows, departed persons",
    "lingering": "retained",
    "misfits": "violations",
    "newcomers": "inserted rows, new persons",
    "standing": "membership difference, counts",
    "strays": "out-of-domain values",
    "told": "disclosed, explained",
    "tries": "trials",
    "turnover": "membership",
    "vitals": "health",
    "wording": "messages",
}


def names():
    """Yield the modules, classes and functions of the package, each with its module."""
    for path in sorted((TREE / "dbanon").rglob("*.py")):
        module = str(path.relative_to(TREE / "dbanon"))
        yield module, path.stem
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                yield module, node.name


def test_no_former_name_returns():
    parts = {}
    for module, name in names():
        for part in re.findall(r"[A-Z]?[a-z]+", name):
            parts.setdefault(part.lower(), []).append((module, name))
    found = [(*parts[part], RENAMED[part]) for part in RENAMED.keys() & parts.keys()]
    assert [] == found
