"""How long torch's threads wait in a circle for more work, while others could use the core.

Between two operations the threads of OpenMP (GNU's, which torch brings along on Linux) go round in
a loop for milliseconds before they sleep. Statistics are made between two operations, by threads of
their own, and would share the cores with that loop. A few hundred microseconds are enough for the
operations of a model, which follow each other faster.
"""

import os
from collections.abc import MutableMapping

ROUNDS = "10000"  # instead of 300,000
LIMITS = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")  # a person's own setting is theirs


def wait_less(environ: MutableMapping[str, str] = os.environ) -> None:
    """Have OpenMP's threads sleep sooner; it looks at this once, when torch is imported."""
    if not any(name in environ for name in LIMITS):
        environ[LIMITS[0]] = ROUNDS
