"""What measures say of themselves is what they do, and what the method page says."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_measures import added, observer

from headscope.measures.registry import DEFINITIONS, MEASURES
from headscope.pairs import peak, quantile
from headscope.study.estimates import quantities
from headscope.study.modes import SimilarityKind
from headscope.study.observe import Observer

DOCS = Path(__file__).parents[2] / "docs"


def test_the_method_page_says_what_the_registry_says():
    spec = importlib.util.spec_from_file_location("definitions", DOCS / "definitions.py")
    definitions = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(definitions)
    page = definitions.PAGE.read_text(encoding="utf-8")
    assert page == definitions.written(page), "run: python docs/definitions.py"
    for name in DEFINITIONS:
        assert f"\n| {name} | " in page


def test_no_two_quantities_have_one_name():
    names = [one.name for measure in MEASURES.values() for one in measure.definitions]
    assert len(names) == len(set(names))


def test_every_measure_gives_the_quantities_it_defines_and_chance_where_it_says_so(tiny, units):
    totals = added(observer(tiny), [units[:2]])
    assert {key.measure for key in totals.sums} == set(MEASURES)
    for key in totals.sums:
        found, defined = quantities(totals, key), MEASURES[key.measure].definitions
        assert sorted(found) == sorted(one.name for one in defined)
        for one in defined:
            assert (found[one.name].chance is not None) == bool(one.chance), one.name
            if one.show == "percent":
                value = found[one.name].value[0]
                assert ((value >= 0) & (value <= 1) | np.isnan(value)).all(), one.name


@pytest.mark.parametrize("name", [name for name in MEASURES if name != "focus"])
def test_numbers_depend_on_the_rule_just_where_a_measure_says_so(tiny, units, name):
    measure = MEASURES[name]
    seen_by = Observer(tiny, [SimilarityKind()], [quantile(0.01), quantile(0.2)], 0)
    _, seen = seen_by.see(sorted(units, key=len)[-2:], "real")
    one, other = (measure.update(each) for each in seen)
    differ = any((one[n] != other[n]).any() for n in one)
    assert differ == ("rule" in measure.keys)


@pytest.mark.parametrize("name", [name for name in MEASURES if name != "focus"])
def test_a_measure_uses_vectors_just_where_it_says_so(tiny, units, name):
    measure = MEASURES[name]
    seen_by = Observer(tiny, [SimilarityKind()], [peak(0.3)], seed=0)
    _, [seen] = seen_by.see(units[:2], "real")
    without = replace(seen, vectors={}, detection=None, clustered=None)
    try:
        one, other = measure.update(seen), measure.update(without)
        uses = any((one[n] != other[n]).any() for n in one)
    except (KeyError, TypeError):
        uses = True
    assert uses == ("vectors" in measure.inputs)
