from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbanon.domain.errors import ConfigError
from dbanon.formats.cron import Cron

MOMENTS = st.datetimes(datetime(2024, 1, 1), datetime(2028, 1, 1)).map(  # noqa: DTZ001
    lambda moment: moment.replace(tzinfo=UTC)
)
EXPRESSIONS = st.sampled_from(
    ["15 3 * * *", "*/5 * * * *", "30 2 * * *", "0 0 1 * *", "17 4 * * SUN", "0 2-4 * * 1-5"]
)


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_the_last_time_is_at_or_before_now_and_the_next_after_it():
    cron = Cron("15 3 * * *")
    for now in ("2026-11-23 03:15:00", "2026-11-23 03:15:00.4", "2026-11-24 03:14:59.9"):
        assert at("2026-11-23 03:15") == cron.last(at(now))
        assert at("2026-11-24 03:15") == cron.next(at(now))


def test_times_are_those_of_the_zone():
    cron = Cron("15 3 * * *", "Europe/Berlin")
    assert at("2026-07-01 01:15") == cron.last(at("2026-07-01 12:00"))
    assert at("2026-12-01 02:15") == cron.last(at("2026-12-01 12:00"))


@given(EXPRESSIONS, st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"]), MOMENTS)
def test_nothing_is_due_between_the_last_time_and_the_next(expression, zone, now):
    cron = Cron(expression, zone)
    last, following = cron.last(now), cron.next(now)
    assert last <= now < following
    assert cron.last(last) == last


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "15 3 * *",
        "0 15 3 * * *",
        "61 3 * * *",
        "0 0 30 2 *",
        "* * */20 * 1L",
        "1;DROP * * * *",
        "\x1b[2J * * * *",
        "²L * * * *",
        "* * * * " + "1," * 200 + "1",
    ],
)
def test_what_is_no_cron_expression_is_refused_in_words(expression):
    with pytest.raises(ConfigError) as caught:
        Cron(expression)
    assert "'15 3 * * *'" in caught.value.hint
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "zone", ["Atlantis", "../../etc/passwd", "/etc/passwd", "Europe", "", "\0"]
)
def test_what_is_no_time_zone_is_refused_in_words(zone):
    with pytest.raises(ConfigError, match="no time zone of this machine"):
        Cron("15 3 * * *", zone)
