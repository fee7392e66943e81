"""What a section of the report about a verb is, and a figure that needs what it adds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING

import altair as alt

from headscope.errors import CannotDraw
from headscope.markup import Content

if TYPE_CHECKING:
    from headscope.study.folder import Study

Figure = Callable[["Study"], alt.LayerChart]


@dataclass(frozen=True, slots=True)
class AddedFigure:
    """A chart, and the quantities in it, which are defined under it."""

    draw: Figure
    quantities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """What the report says of one verb, where its tables are there."""

    verb: str
    title: str
    meaning: str  # in plain words
    figures: Mapping[str, AddedFigure]  # by their names, as `headscope figure` knows them
    more: Callable[["Study"], list[Content]] | None = None  # from the tables
    wide: bool = False  # what stands in `more` needs the whole width

    def has(self, study: "Study") -> bool:
        """Whether the study was given what the section speaks of."""
        return self.verb in study.manifest.added

    def drawing(self, name: str) -> Figure:
        """A figure that says what to do where the study was not given what it needs."""
        draw = self.figures[name].draw

        @wraps(draw)
        def drawn(study: "Study") -> alt.LayerChart:
            if not self.has(study):
                raise CannotDraw(
                    f"'{study.path}' has nothing to draw '{name}' from. This adds it: "
                    f"headscope {self.verb} CORPUS --out {study.path}"
                )
            return draw(study)

        return drawn


def read_for(study: "Study", verb: str) -> str:
    """From how much of the corpus a verb made what it added, for the caption of a figure."""
    how = study.manifest.added[verb]
    return f"from {how.documents:,} documents, {how.tokens:,} tokens; 95 % intervals in the study"
