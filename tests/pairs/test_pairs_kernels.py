import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch


@pytest.mark.skipif(
    find_spec("triton") is None,
    reason="Triton is not installed (it comes with torch for CUDA; on Linux: pip install triton)",
)
@pytest.mark.parametrize("name", ["kernel_cases", "study_cases"])
def test_what_a_gpu_does_agrees_on_a_gpu_or_interpreted(name):
    cases = Path(__file__).with_name(f"{name}.py")
    interpret = {} if torch.cuda.is_available() else {"TRITON_INTERPRET": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(cases)]
    run = subprocess.run(
        command, env=os.environ | interpret, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout[-5000:]
