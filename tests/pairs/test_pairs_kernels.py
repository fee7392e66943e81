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
def test_kernels_agree_with_the_reference_on_a_gpu_or_interpreted():
    cases = Path(__file__).with_name("kernel_cases.py")
    interpret = {} if torch.cuda.is_available() else {"TRITON_INTERPRET": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(cases)]
    run = subprocess.run(
        command, env=os.environ | interpret, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout[-5000:]
