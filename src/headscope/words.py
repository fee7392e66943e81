"""What class of word a token belongs to: content, function, punctuation, or none that is spoken.

Classes are simple on purpose, and say so: function words are a closed list in English, and in other
languages the words of up to three letters; in scripts without letters every word is content.
"""

from enum import IntEnum
from functools import lru_cache

import regex


class WordClass(IntEnum):
    """The class of a word; of a pair, the later of its ends' classes."""

    CONTENT = 0
    FUNCTION = 1
    PUNCTUATION = 2
    MARKUP = 3  # also what the tokenizer does not know

    @property
    def label(self) -> str:
        """The name a person reads."""
        return ("content words", "function words", "punctuation", "unknown tokens and markup")[self]


# Tags and entities, names of special tokens spelled in the text, and WikiText's @-@.
MARKUP = regex.compile(
    r"</?[A-Za-z][\w:.-]*(?:\s+[\w:-]+=(?:\"[^\"<>]*\"|'[^'<>]*'|[^\s<>\"']+))*\s*/?>"
    r"|<!--.*?-->|&(?:[A-Za-z]{2,8}|#x?[0-9A-Fa-f]{1,6});"
    r"|\[(?:UNK|PAD|MASK|CLS|SEP)\]|@[-,.]@",
    regex.DOTALL,
)
SPOKEN = regex.compile(r"[\p{L}\p{N}]")
SHORT = regex.compile(
    r"[\p{L}\p{M}--[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]]"
    r"{1,3}",
    regex.V1,
)

FUNCTION_WORDS = """
a an the this that these those such same other another each every either neither both all any some
no none many much more most few fewer less least several enough half own
i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself
she her hers herself it its itself they them their theirs themselves one oneself who whom whose
which what whoever whatever whichever someone somebody something anyone anybody anything everyone
everybody everything nobody nothing there here
be am is are was were been being have has had having do does did doing done will would shall should
can could may might must ought cannot
and or but nor so yet for if because although though while whereas unless until till since than as
whether when whenever where wherever why how however therefore thus hence
of in to on at by with from into onto upon about above across after against along among amongst
around before behind below beneath beside besides between beyond concerning despite down during
except inside like near off out outside over past per regarding round through throughout toward
towards under underneath unlike up via within without
not too very also just only even still again ever never always often then now once already quite
rather perhaps almost else
"""
ENGLISH = frozenset(FUNCTION_WORDS.split())


def word_classes(text: str, spans: list[tuple[int, int]], language: str) -> list[WordClass]:
    """The class of each word, given by where it stands in the text."""
    marked = [found.span() for found in MARKUP.finditer(text)]
    found, at = [], 0
    for start, end in spans:
        while at < len(marked) and marked[at][1] <= start:
            at += 1
        inside = at < len(marked) and marked[at][0] < end
        found.append(WordClass.MARKUP if inside else class_of(text[start:end], language == "en"))
    return found


@lru_cache(maxsize=2**16)
def class_of(word: str, english: bool) -> WordClass:
    """The class of a word by itself."""
    if not SPOKEN.search(word):
        return WordClass.PUNCTUATION
    if not english:
        return WordClass.FUNCTION if SHORT.fullmatch(word) else WordClass.CONTENT
    plain = word.casefold().replace("’", "'")
    first = plain.split("'")[0]
    is_function = plain in ENGLISH or first in ENGLISH or plain.endswith("n't")
    return WordClass.FUNCTION if is_function else WordClass.CONTENT
