"""What is known of a command's commits is said in plain sentences."""

from dbanon.domain import outcomes
from dbanon.domain.outcomes import CommitOutcome, Operation, Operations

ONE, TWO = (
    Operation("anon.one", "published"),
    Operation("release 2", "withdrawn", "dbanon release list"),
)


def told(*entries):
    return str(Operations(list(entries)))


def test_nothing_is_said_to_be_done_before_it_is_committed():
    assert "nothing was changed" == told()
    assert "nothing was published" == told((ONE, CommitOutcome.NOT_DONE))
    assert "anon.one was published" == told((ONE, CommitOutcome.DONE))


def test_what_was_done_and_what_was_not_stand_side_by_side():
    assert "anon.one was published; release 2 was not withdrawn" == told(
        (ONE, CommitOutcome.DONE), (TWO, CommitOutcome.NOT_DONE)
    )
    assert "anon.one was published; release 2 was not withdrawn" == told(
        (TWO, CommitOutcome.NOT_DONE), (ONE, CommitOutcome.DONE)
    )


def test_what_is_unknown_comes_with_where_to_look():
    assert "whether release 2 was withdrawn is unknown: run dbanon release list" == told(
        (TWO, CommitOutcome.UNKNOWN)
    )


def test_a_deed_that_was_withdrawn_is_not_settled():
    entered = Operations()
    entered.begin(ONE)
    entered.withdraw()
    entered.settle(ONE, CommitOutcome.DONE)
    assert not entered.any_done
    entered.begin(ONE)
    entered.settle(ONE, CommitOutcome.DONE)
    entered.begin(TWO)
    assert (True, True) == (entered.any_done, entered.partly_done)


def test_what_is_done_within_a_block_is_entered_in_one_list():
    with outcomes.followed() as followed:
        outcomes.present().begin(ONE)
        assert outcomes.present() is followed
        assert [(ONE, CommitOutcome.NOT_DONE)] == followed.entries
    assert outcomes.present() is not followed
