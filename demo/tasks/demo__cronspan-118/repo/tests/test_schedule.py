from datetime import datetime

import pytest

from cronspan import CronSyntaxError, NoOccurrence, Schedule


def test_next_after_is_strictly_later():
    schedule = Schedule.parse("0 12 * * *")
    assert schedule.next_after(datetime(2023, 5, 5, 11, 59)) == datetime(2023, 5, 5, 12, 0)
    assert schedule.next_after(datetime(2023, 5, 5, 12, 0)) == datetime(2023, 5, 6, 12, 0)


def test_next_after_skips_months():
    schedule = Schedule.parse("15 6 1 feb *")
    assert schedule.next_after(datetime(2023, 3, 1)) == datetime(2024, 2, 1, 6, 15)


def test_weekday_alone():
    schedule = Schedule.parse("30 2 * * mon-fri")
    assert schedule.next_after(datetime(2023, 5, 5, 12, 0)) == datetime(2023, 5, 8, 2, 30)


def test_day_of_month_alone():
    schedule = Schedule.parse("0 0 31 * *")
    assert schedule.next_after(datetime(2023, 4, 1)) == datetime(2023, 5, 31)


def test_leap_day():
    schedule = Schedule.parse("0 0 29 2 *")
    assert schedule.next_after(datetime(2023, 1, 1)) == datetime(2024, 2, 29)


def test_previous_before():
    schedule = Schedule.parse("*/15 * * * *")
    assert schedule.previous_before(datetime(2023, 1, 1, 0, 0)) == datetime(2022, 12, 31, 23, 45)
    assert schedule.previous_before(datetime(2023, 1, 1, 0, 0, 30)) == datetime(2023, 1, 1)


def test_between_includes_start_and_leaves_out_end():
    schedule = Schedule.parse("@hourly")
    found = list(schedule.between(datetime(2023, 1, 1, 0, 0), datetime(2023, 1, 1, 3, 0)))
    assert [moment.hour for moment in found] == [0, 1, 2]


def test_thinned_days_still_respect_the_weekday():
    schedule = Schedule.parse("0 0 */2 * sun")
    found = list(schedule.between(datetime(2023, 5, 1), datetime(2023, 6, 1)))
    assert [moment.day for moment in found] == [7, 21]


def test_impossible_date():
    with pytest.raises(NoOccurrence):
        Schedule.parse("0 0 30 2 *").next_after(datetime(2023, 1, 1))


def test_equality_is_by_meaning():
    assert Schedule.parse("0 0 * * 7") == Schedule.parse("@weekly")


@pytest.mark.parametrize("text", ["* * * *", "@fortnightly", "* * * * * *"])
def test_syntax_errors(text):
    with pytest.raises(CronSyntaxError):
        Schedule.parse(text)
