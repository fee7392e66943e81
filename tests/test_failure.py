"""How a command ends where something else than an answer came of it."""

import pytest

from headscope.cli.failure import STOPPED, run


def test_ctrl_c_while_a_class_is_made_is_no_fault_of_ours(capsys: pytest.CaptureFixture[str]):
    """Python 3.11 makes a RuntimeError of whatever `__set_name__` raises."""

    class Stops:
        def __set_name__(self, owner: type, name: str) -> None:
            raise KeyboardInterrupt

    def command(arguments: list[str], standalone_mode: bool) -> None:
        type("Made", (), {"value": Stops()})

    assert run(command, []) == STOPPED
    assert capsys.readouterr().err.strip() == "Stopped."
