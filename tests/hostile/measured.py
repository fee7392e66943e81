"""A command in a process of its own, and the most memory it held."""

import resource
import subprocess
import sys
import tempfile
from pathlib import Path


def most_memory(command: list[str], **options: object) -> tuple[int, subprocess.CompletedProcess]:
    """Run a command; the peak of its resident memory in bytes, and what it said."""
    inner = (
        "import resource, subprocess, sys\n"
        "code = subprocess.run(sys.argv[2:], check=False).returncode\n"
        "peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss\n"
        "open(sys.argv[1], 'w').write(str(peak))\n"
        "sys.exit(code)"
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "peak"
        said = subprocess.run(
            [sys.executable, "-c", inner, str(file), *command],
            capture_output=True,
            text=True,
            check=False,
            **options,
        )
        unit = 1 if sys.platform == "darwin" else 1024
        return int(file.read_text()) * unit, said


def largest_file(size: int) -> None:
    """Let this process write no file beyond a size, as a full disk would."""
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
