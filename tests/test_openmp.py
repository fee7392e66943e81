"""Threads of OpenMP sleep soon, unless a person has said otherwise."""

import os
import subprocess
import sys

import pytest

from headscope.openmp import ROUNDS, wait_less


@pytest.mark.parametrize("theirs", [{"GOMP_SPINCOUNT": "7"}, {"OMP_WAIT_POLICY": "active"}])
def test_a_persons_own_setting_stays(theirs):
    environ = dict(theirs)
    wait_less(environ)
    assert environ == theirs


def test_it_is_set_before_torch_is_there():
    own = {name: value for name, value in os.environ.items() if name != "GOMP_SPINCOUNT"}
    own.pop("OMP_WAIT_POLICY", None)
    say = "import headscope, os, sys; print(os.environ['GOMP_SPINCOUNT'], 'torch' in sys.modules)"
    command = [sys.executable, "-c", say]
    said = subprocess.run(command, env=own, capture_output=True, text=True, check=True).stdout
    assert said.split() == [ROUNDS, "False"]
