import pytest

from cronspan import CronSyntaxError
from cronspan.fields import DAY, HOUR, MINUTE, MONTH, WEEKDAY


def test_single_values_and_lists():
    assert MINUTE.parse("5,10,15").values == {5, 10, 15}


def test_ranges_and_steps():
    assert HOUR.parse("9-17/4").values == {9, 13, 17}
    assert MINUTE.parse("*/20").values == {0, 20, 40}


def test_open_step_runs_to_the_end():
    assert MINUTE.parse("50/3").values == {50, 53, 56, 59}


def test_names_mix_with_numbers():
    assert MONTH.parse("jan,3,DEC").values == {1, 3, 12}
    assert WEEKDAY.parse("mon-wed,6").values == {1, 2, 3, 6}


def test_seven_is_sunday():
    assert WEEKDAY.parse("7").values == {0}
    assert WEEKDAY.parse("5-7").values == {5, 6, 0}


def test_starred():
    assert DAY.parse("*").starred
    assert DAY.parse("*/2").starred
    assert not DAY.parse("1-31").starred


@pytest.mark.parametrize("text", ["", "60", "x", "5-1", "*/0", "1,,2", "-3"])
def test_nonsense_is_refused(text):
    with pytest.raises(CronSyntaxError, match="minute"):
        MINUTE.parse(text)
