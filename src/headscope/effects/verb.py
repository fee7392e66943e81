"""What a verb is: something that a finished study is given later on, with its tables and words.

A study says what heads look like; a verb adds what comes of it, such as what silencing each head
costs. What it is called, which tables it adds and what every quantity means is said here once; the
command line, the viewer, the report and the method page have it from here.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from headscope.measures.base import Definition


@dataclass(frozen=True, slots=True)
class Verb:
    """What is added to a study under one name."""

    name: str  # of the command, and of the addition in the manifest
    about: str  # one line
    tables: Mapping[str, tuple[Definition, ...]]  # those made by `tables.quantity_table`
    told: tuple[str, ...] = ()  # quantities of heads that a head's card says first
    other_tables: tuple[str, ...] = ()  # of other columns, such as curves

    @property
    def definitions(self) -> dict[str, Definition]:
        """What every quantity means, by its name."""
        return {one.name: one for table in self.tables.values() for one in table}
