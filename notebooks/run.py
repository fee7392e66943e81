"""Execute notebooks and keep what they show: `python notebooks/run.py`, or with names of some.

Each runs in a folder of its own, so that what it writes is not left here. What is kept is small: no
number of an execution, no output of more than 60 kB.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import nbclient
import nbformat

HERE = Path(__file__).parent
LARGEST = 60_000  # characters of an output


def executed(file: Path, folder: str, timeout: int = 300) -> Any:
    """The notebook with what it shows now, run in a folder."""
    notebook = nbformat.read(file, as_version=4)
    client = nbclient.NotebookClient(
        notebook,
        timeout=timeout,
        kernel_name="python3",
        resources={"metadata": {"path": folder}},
        record_timing=False,
    )
    client.execute()
    return notebook


def small(notebook: Any) -> Any:
    """The same without what is large, or differs from run to run."""
    notebook.metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = [one for one in cell.outputs if len(str(one)) <= LARGEST]
            for output in cell.outputs:
                if "execution_count" in output:
                    output.execution_count = None
    return notebook


def main() -> None:
    """Run those that are named, or all, and write down what they show."""
    files = [Path(name) for name in sys.argv[1:]] or sorted(HERE.glob("*.ipynb"))
    for file in files:
        with tempfile.TemporaryDirectory() as folder:
            nbformat.write(small(executed(file, folder)), file)
        print(file.name, flush=True)


if __name__ == "__main__":
    main()
