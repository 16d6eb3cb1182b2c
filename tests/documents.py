"""Documents of ``--json``, compared with the schemas that are published."""

from __future__ import annotations

import json
import sys
from functools import cache

import json_schemas
import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match


def flaw(command, document):
    """Return why a document is not one of its command's schema, with these keys only; or None."""
    error = best_match(_strict(command).iter_errors(document))
    return None if error is None else f"{error.message} at {error.json_path}"


@cache
def _strict(command):
    schema = json_schemas.schema(command)
    for kind in schema["$defs"].values():
        if "properties" in kind:
            kind["additionalProperties"] = False
    return Draft202012Validator(schema)


def comparing(document, plain):
    """Return ``document``, which prints a value, with a comparison of the value before."""

    def compared(value):
        words = [word for word in sys.argv[1:] if not word.startswith("-")]
        names = (" ".join(words[:length]) for length in (3, 2, 1))
        known = (name for name in names if name in json_schemas.COMMANDS)
        command = next(known, f"{words[0]} set")  # which the command line lets people leave out
        found = flaw(command, json.loads(json.dumps(plain(value))))
        if found is not None:
            pytest.fail(f"dbanon {command} --json: {found}")
        document(value)

    return compared
