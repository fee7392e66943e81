"""Work behind the model: in order, none lost, and an error where it can be seen."""

import gc

import pytest

from headscope.compute.background import LATE, MOST, Background, Later, garbage_of_before_left


@pytest.mark.parametrize(("kind", "waiting"), [(Background, MOST), (Later, LATE)])
def test_calls_come_in_order_and_few_wait(kind, waiting):
    done, behind_by = [], []
    with kind() as behind:
        for number in range(20):
            behind(done.append, number)
            behind_by.append(number + 1 - len(done))
        behind.wait()
    assert done == list(range(20))
    assert max(behind_by) <= waiting


@pytest.mark.parametrize("kind", [Background, Later])
def test_an_error_is_raised_where_the_work_is_asked_for(kind):
    def fail() -> None:
        raise ValueError("no")

    with kind() as behind:
        behind(fail)
        with pytest.raises(ValueError, match="no"):
            behind.wait()


def test_what_was_there_before_is_collected_again_afterwards():
    with garbage_of_before_left():
        assert gc.get_freeze_count() > 1000
    assert gc.get_freeze_count() == 0
