"""The JSON schema of policy files says what dbanon says of them."""

import importlib.resources
import json
import tomllib

import policy_schema
import pytest
from jsonschema import Draft7Validator
from pages import blocks

from dbanon.anonymization.registry import ALGORITHMS, MASKING, RECODINGS
from dbanon.domain.errors import PolicyError
from dbanon.formats import policies
from dbanon.models.registry import MODELS

VALIDATOR = Draft7Validator(policy_schema.schema())
DATA = importlib.resources.files("dbanon") / "data"
SHIPPED = [(DATA / name).read_text(encoding="utf-8") for name in ("adult.toml", "patients.toml")]
COLUMN = '\n[columns.age]\nrole = "quasi"\n'
WHERE = 'table = "t"\nwhere = [{column = "a",'
STEP = 'table = "t"\n[[masking]]\ncolumns = ["age"]\n'
SENSITIVE = f'{COLUMN}[columns.disease]\nrole = "sensitive"\n'
GOOD = {
    "every kind of key": 'table = "t"\nblock = 5\nsubject = "id"\nrows_per_subject = "group"\n'
    f'population = "public.people"\nclass_label = "disease"\nmax_suppressed = 0.5\n{SENSITIVE}',
    "a name": f'table = "t"\nname = "a-1_b"\n{COLUMN}',
    "columns left out": f'table = "t"\nrest = "drop"\n{COLUMN}',
    "conditions": 'table = "t"\nwhere = [{column = "a", is = "in", value = ["x"]}, {column = "b", '
    'is = "is null"}, {column = "c", is = "between", value = [1, 2]}, {column = "d", is = "<", '
    f"value = 1.5}}]\n{COLUMN}",
    "labels": f'table = "t"\nlabels = true\n{COLUMN}',
    "anatomy": f'table = "t"\nanatomy = true\n{SENSITIVE}',
    "a deadline": f'table = "t"\nerase_within = "30d"\n{COLUMN}',
    "a sample": f'table = "t"\nsample = 0.5\n{COLUMN}',
    "a cap of rows": f'table = "t"\nsubject = "id"\nrows_per_subject = 3\n{COLUMN}',
    "models by their parameters": f'table = "t"\n[models]\nk = 5\nl = 3\nt = 0.2\n{SENSITIVE}',
    "models by name": 'table = "t"\n[models.recursive-l-diversity]\nc = 3\nl = 3\n'
    f'columns = ["disease"]\nmulti = "strict"\n{SENSITIVE}',
    "parameters of auto, unnamed": f'table = "t"\n[params]\neffort = "best"\n{COLUMN}',
    "parameters of another": f'table = "t"\nalgorithm = "v-mdav"\n[params]\ngamma = 1\n{COLUMN}',
    "an order of values": f'table = "t"\n{SENSITIVE}order = ["a", "b"]\n',
    "a tree of values": f'table = "t"\n{SENSITIVE}taxonomy = "d"\n',
    "what is meant": 'table = "t"\nallow = ["k-of-one: for a test"]\n'
    f'{SENSITIVE}allow = ["near-unique : it is, and is meant to be"]\n',
    "all of a quasi-identifier": f'table = "t"\n{COLUMN}recoding = "mean"\nweight = 2\nsnap = 5\n'
    "digits = 0\n",
    "floors": f'table = "t"\n{COLUMN}bands = 10\ntop = 90\nbottom = -1.5\n'
    '[columns.born]\nrole = "quasi"\nat_least = "year"\n'
    '[columns.zip]\nrole = "quasi"\nat_least = 3\npooled = ["036"]\n',
    "rare values": f'table = "t"\n{COLUMN}rare = "suppress"\n',
    "a kept column": f'table = "t"\n{COLUMN}keep = true\n',
}
BAD = {
    "no table": COLUMN,
    "a rest that is published": f'table = "t"\nrest = "insensitive"\n{COLUMN}',
    "no conditions": f'table = "t"\nwhere = []\n{COLUMN}',
    "a condition of SQL": f'table = "t"\nwhere = ["a = 1"]\n{COLUMN}',
    "a condition without a value": f'{WHERE} is = "="}}]\n{COLUMN}',
    "a condition with too many": f'{WHERE} is = "=", value = [1]}}]\n{COLUMN}',
    "a condition that takes none": f'{WHERE} is = "is null", value = 1}}]\n{COLUMN}',
    "a range of one": f'{WHERE} is = "between", value = [1]}}]\n{COLUMN}',
    "a deadline of no days": f'table = "t"\nerase_within = "0d"\n{COLUMN}',
    "a deadline of months": f'table = "t"\nerase_within = "1m"\n{COLUMN}',
    "labels by another word": f'table = "t"\nlabels = "yes"\n{COLUMN}',
    "all persons as a sample": f'table = "t"\nsample = 1.0\n{COLUMN}',
    "a sample of nobody": f'table = "t"\nsample = 0\n{COLUMN}',
    "a sample by the word": f'table = "t"\nsample = "half"\n{COLUMN}',
    "a masking method there is none of": f"{STEP}method = 'blur'\n{COLUMN}",
    "no column to mask": f'table = "t"\n[[masking]]\nmethod = "permutation"\n{COLUMN}',
    "an odd name": f'table = "t"\nname = "A b"\n{COLUMN}',
    "no column": 'table = "t"\n[columns]\n',
    "no role": 'table = "t"\n[columns.age]\nrecoding = "label"\n',
    "an unknown key": f'table = "t"\nmax_supressed = 0.1\n{COLUMN}',
    "an unknown key of a column": f'table = "t"\n{COLUMN}weigth = 2\n',
    "an unknown role": 'table = "t"\n[columns.age]\nrole = "secret"\n',
    "an unknown recoding": f'table = "t"\n{COLUMN}recoding = "intervall"\n',
    "an unknown algorithm": f'table = "t"\nalgorithm = "mondrain"\n{COLUMN}',
    "an unknown model": f'table = "t"\n[models.k-anonimity]\nk = 5\n{COLUMN}',
    "an unknown parameter of a model": f'table = "t"\n[models.k-anonymity]\nk = 5\nl = 3\n{COLUMN}',
    "a model without its parameter": f'table = "t"\n[models.t-closeness]\n{COLUMN}',
    "k = 0": f'table = "t"\n[models]\nk = 0\n{COLUMN}',
    "k = 2.5": f'table = "t"\n[models]\nk = 2.5\n{COLUMN}',
    "t above 1": f'table = "t"\n[models]\nt = 1.5\n{COLUMN}',
    "alpha = 0": f'table = "t"\n[models]\nalpha = 0\n{COLUMN}',
    "an unknown distance": 'table = "t"\n[models.t-closeness]\nt = 0.2\ndistance = "far"\n'
    + COLUMN,
    "all rows left out": f'table = "t"\nmax_suppressed = 1\n{COLUMN}',
    "blocks of no rows": f'table = "t"\nblock = 0\n{COLUMN}',
    "persons by another word": f'table = "t"\nsubject = "id"\nrows_per_subject = "all"\n{COLUMN}',
    "a weight of 0": f'table = "t"\n{COLUMN}weight = 0\n',
    "a period there is none of": f'table = "t"\n{COLUMN}at_least = "century"\n',
    "no character at least": f'table = "t"\n{COLUMN}at_least = 0\n',
    "bands of no width": f'table = "t"\n{COLUMN}bands = 0\n',
    "a top of texts": f'table = "t"\n{COLUMN}top = "90"\n',
    "a floor of a sensitive column": f'table = "t"\n{SENSITIVE}at_least = 3\n',
    "keep by another word": f'table = "t"\n{COLUMN}keep = "yes"\n',
    "one text that is pooled": f'table = "t"\n{COLUMN}pooled = "036"\n',
    "rare by another word": f'table = "t"\n{COLUMN}rare = "drop"\n',
    "half a digit": f'table = "t"\n{COLUMN}digits = 0.5\n',
    "a value twice in an order": f'table = "t"\n{COLUMN}order = ["a", "a"]\n',
    "a warning that does not exist": f'table = "t"\n{COLUMN}allow = ["unique: why"]\n',
    "no reason": f'table = "t"\n{COLUMN}allow = ["near-unique: "]\n',
    "a warning of a column for all": f'table = "t"\nallow = ["near-unique: why"]\n{COLUMN}',
    "a warning of all for a column": f'table = "t"\n{COLUMN}allow = ["k-of-one: why"]\n',
    "a recoding of a sensitive column": f'table = "t"\n{SENSITIVE}recoding = "label"\n',
    "an order of an identifier": 'table = "t"\n[columns.a]\nrole = "identifier"\norder = ["a"]\n',
}


def problems(text):
    return [error.message for error in VALIDATOR.iter_errors(tomllib.loads(text))]


@pytest.mark.parametrize("params", ["", "share = 1\nk = 3", "share = 'much'"])
def test_parameters_of_a_masking_method_are_known(params):
    assert problems(f"{STEP}method = 'noise'\nshare = 0.1\n{COLUMN}") == []
    assert problems(f"{STEP}method = 'noise'\n{params}\n{COLUMN}") != []


def test_the_file_that_editors_read_is_the_schema_of_the_code():
    assert policy_schema.FILE.read_text("utf-8") == policy_schema.text(), (
        "run: python docs/policy_schema.py"
    )


def test_the_schema_is_one():
    Draft7Validator.check_schema(json.loads(policy_schema.text()))


def test_every_key_of_a_file_and_of_a_column_is_described():
    top = policy_schema.schema()["properties"]
    column = top["columns"]["additionalProperties"]["properties"]
    assert [key for key, value in {**top, **column}.items() if not value.get("description")] == []


POLICIES = [text for text in blocks("toml") if not text.startswith("persons = ")]


@pytest.mark.parametrize("text", [*GOOD.values(), *SHIPPED, *POLICIES])
def test_what_dbanon_reads_the_schema_allows(text):
    policies.parse(text, policies.Known(ALGORITHMS, MODELS, RECODINGS, MASKING))
    assert problems(text) == []


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_what_dbanon_refuses_in_a_file_the_schema_refuses(text):
    with pytest.raises(PolicyError):
        policies.parse(text, policies.Known(ALGORITHMS, MODELS, RECODINGS, MASKING))
    assert problems(text) != []


@pytest.mark.parametrize("name", ALGORITHMS)
def test_parameters_are_those_of_the_algorithm(name):
    text = f'table = "t"\nalgorithm = "{name}"\n[params]\nnone_has_this = 1\n{COLUMN}'
    assert problems(text) != []
