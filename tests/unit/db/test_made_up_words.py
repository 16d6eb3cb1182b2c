"""The kinds of made-up words."""

from dbanon.db.releases.replacements import ADDRESSES, WORDS
from dbanon.domain.policy import REPLACEMENT


def test_each_kind_that_a_policy_may_name_has_words_or_a_pattern():
    names = REPLACEMENT.partition("|code:")[0].split("|")
    assert {*names} == {*WORDS, *ADDRESSES, "name", "phone"}


def test_no_byte_of_a_hash_decides_about_two_kinds():
    used = [byte for words in WORDS.values() for byte in range(words.first, words.first + 2)]
    used += [byte for first, _ in ADDRESSES.values() for byte in range(first, first + 5)]
    assert len(used) == len({*used})
    assert max(used) < 32
