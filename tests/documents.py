"""Documents of ``--json``, compared with the schemas that are published."""

from __future__ import annotations

import json
import sys
from functools import cache

import json_schemas
import pytest
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match


def require_valid(command, document):
    """Raise ValidationError unless a document has the keys of its command's schema only."""
    error = best_match(_strict(command).iter_errors(document))
    if error is not None:
        raise error


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
        if not words:  # a test calls the function itself, not a command
            return document(value)
        names = (" ".join(words[:length]) for length in (3, 2, 1))
        known = (name for name in names if name in json_schemas.COMMANDS)
        command = next(known, f"{words[0]} set")  # which the command line lets people leave out
        try:
            require_valid(command, json.loads(json.dumps(plain(value))))
        except ValidationError as error:
            pytest.fail(f"dbanon {command} --json: {error.message} at {error.json_path}")
        return document(value)

    return compared
