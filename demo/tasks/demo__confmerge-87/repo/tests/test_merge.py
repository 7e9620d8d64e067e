import pytest

from confmerge.merge import flatten, lookup, merge, nest


def test_tables_merge_and_leaves_replace():
    assert merge({"a": {"x": 1, "y": 2}, "b": [1]}, {"a": {"y": 3}, "b": [2]}) == {"a": {"x": 1, "y": 3}, "b": [2]}


def test_none_drops_a_key():
    assert merge({"a": 1, "b": {"c": 2}}, {"a": None, "b": {"c": None}}) == {"b": {}}


def test_merge_leaves_its_arguments_alone():
    base, over = {"a": {"x": 1}}, {"a": {"x": 2}}
    merge(base, over)
    assert (base, over) == ({"a": {"x": 1}}, {"a": {"x": 2}})


def test_dotted_keys():
    tree = nest("a.b.c", 1)
    assert tree == {"a": {"b": {"c": 1}}}
    assert lookup(tree, "a.b") == {"c": 1}
    assert list(flatten(tree)) == [("a.b.c", 1)]
    with pytest.raises(KeyError):
        lookup(tree, "a.b.c.d")
