import pytest

from headscope.pairs import (
    Nearest,
    Peak,
    Quantile,
    Sigma,
    nearest,
    parse_rule,
    peak,
    quantile,
    sigma,
)


@pytest.mark.parametrize(
    "rule", [quantile(), quantile(0.002), quantile(1.0), peak(), peak(0.7), sigma(2), nearest(7)]
)
def test_a_rule_written_down_reads_back_as_itself(rule):
    assert parse_rule(str(rule)) == rule


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("quantile", Quantile(0.01)),
        ("quantile:0.05", Quantile(0.05)),
        ("quantile(2%)", Quantile(0.02)),
        (" Peak ( 0.5 ) ", Peak(0.5)),
        ("sigma(2)", Sigma(2.0)),
        ("nearest:4", Nearest(4)),
        ("nearest", Nearest()),
    ],
)
def test_a_rule_can_be_written_in_several_ways(text, rule):
    assert parse_rule(text) == rule


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("top(5)", "no such rule: 'top\\(5\\)'; write one of quantile"),
        ("", "no such rule"),
        ("quantile(many)", "needs a number in brackets, such as 'quantile\\(0.01\\)'"),
        ("nearest(2.5)", "needs a whole number in brackets"),
        ("quantile(0)", "0 < q <= 1"),
        ("quantile(7)", "0 < q <= 1"),
        ("peak(-1)", "f > 0"),
        ("sigma(nan)", "finite"),
        ("nearest(0)", "k >= 1"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused_with_a_hint(text, message):
    with pytest.raises(ValueError, match=message):
        parse_rule(text)


def test_a_quantile_asks_for_at_least_one_pair_and_never_for_more_than_there_are():
    assert quantile(0.01).number(1) == 1
    assert quantile(0.01).number(100) == 1
    assert quantile(0.01).number(101) == 2
    assert quantile(0.07).number(100) == 7
    assert quantile(1.0).number(6) == 6
