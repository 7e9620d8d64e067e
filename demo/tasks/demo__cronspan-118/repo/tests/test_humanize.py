import pytest

from cronspan import Schedule


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("* * * * *", "every minute"),
        ("30 2 * * mon-fri", "at 02:30, Monday to Friday"),
        ("5 * * * *", "every hour at minute 5"),
        ("0 0 1 1,7 *", "at 00:00, on day 1 of the month, in January and July"),
        ("*/30 9,17 * * *", "at minutes 0 and 30 of hours 9 and 17"),
    ],
)
def test_describe(text, words):
    assert Schedule.parse(text).describe() == words
