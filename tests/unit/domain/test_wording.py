"""Words for what is published."""

from dbanon.anonymization.registry import RECODINGS
from dbanon.domain.wording import RECODED


def test_every_recoding_has_words():
    assert set(RECODINGS) == set(RECODED)


def test_what_is_suppressed_is_said_as_it_is_published():
    assert RECODED["suppress"].startswith("*")
