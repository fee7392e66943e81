"""Tokens of hard texts, for every kind of tokenizer: exact offsets, words, sentences, classes."""

import itertools
import time

import numpy as np
import pytest
import regex
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

import headscope as hs
from headscope.errors import CannotRead
from headscope.text import WORD, TokenClass, Tokens, sentence_spans, tokenize, windows
from tiny import byte_level, metaspace, wordpiece

HARD = {
    "emoji": "A 👩‍👩‍👧‍👦 family 👍🏽 and a flag 🇫🇷!",
    "combining marks": "cafe\u0301 n\u0303o\u0308 नमस्ते ก็",
    "right to left": "שלום עולם. مرحبا بالعالم، كيف الحال؟",
    "one long word": "x" * 10_000,
    "NUL": "one\0two \0 three",
    "CRLF": "First line.\r\nSecond line.\r\n\r\nThird.",
    "tabs": "a\tb\t\tc",
    "one token": "a",
    "spaces around": "   the sea   ",
    "ideographs": "東京は日本の首都です。人口は千四百万人。",
    "special spelled out": "[CLS] is [SEP] not </s> special <s> here [MASK]",
    "zero width": "a\u200bb\u200dc\ufeffd",
    "markup": "</script><img src=x onerror=alert(1)>",
    "byte order mark": "\ufeffThe sea.",
    "astral": "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𐍈 𠜎",
}


def check_offsets(tokens: Tokens) -> None:
    """Offsets are in order and exact: the pieces are the text, and nothing is left out of words."""
    text = [i for i in range(len(tokens)) if not tokens.special[i]]
    assert text
    for i in text:
        a, b = tokens.starts[i], tokens.ends[i]
        assert 0 <= a <= b <= len(tokens.text)
        assert tokens.pieces[i] == tokens.text[a:b]
    starts = tokens.starts[text]
    assert (np.diff(starts) >= 0).all()
    assert (np.diff(tokens.words[text]) >= 0).all()
    assert (np.diff(tokens.sentences[text]) >= 0).all()


@pytest.mark.parametrize("name", HARD)
def test_hard_texts_have_exact_offsets(any_tokenizer: PreTrainedTokenizerFast, name: str) -> None:
    tokens = tokenize(HARD[name], any_tokenizer)
    check_offsets(tokens)
    covered = np.zeros(len(HARD[name]), dtype=bool)
    for a, b in zip(tokens.starts, tokens.ends, strict=True):
        covered[a:b] = True
    lost = {c for c, seen in zip(HARD[name], covered, strict=True) if not seen}
    assert all(not c.isalnum() for c in lost), f"letters outside every token: {lost}"


@pytest.mark.parametrize("text", ["", " ", "\n\t \r\n", "\u2003"])
def test_nothing_to_read_is_an_error_that_says_so(
    any_tokenizer: PreTrainedTokenizerFast, text: str
) -> None:
    with pytest.raises(CannotRead, match="empty or only white space"):
        tokenize(text, any_tokenizer)


def test_a_lone_surrogate_is_named_with_its_place_and_the_remedy() -> None:
    with pytest.raises(
        CannotRead, match=r"'\\ud800'.* at character 4.*encode\('utf-8', 'replace'\)"
    ):
        tokenize("The \ud800 sea", wordpiece())


@pytest.mark.parametrize("thing", [b"bytes", 5, None, ["a", "list"], np.zeros((3, 8, 8))])
def test_what_is_no_text_is_refused(thing: object) -> None:
    with pytest.raises(CannotRead, match="takes a text"):
        tokenize(thing, wordpiece())  # type: ignore[arg-type]


def test_a_text_of_characters_the_tokenizer_drops_is_an_error() -> None:
    with pytest.raises(CannotRead, match="makes no token"):
        tokenize("\x01\x02", wordpiece())


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=st.text(min_size=1, max_size=80))
def test_any_text_is_read_with_exact_offsets_or_refused(
    any_tokenizer: PreTrainedTokenizerFast, text: str
) -> None:
    try:
        tokens = tokenize(text, any_tokenizer)
    except CannotRead:
        assert not text.strip() or any_tokenizer.tokenize(text) == []
        return
    check_offsets(tokens)


@settings(max_examples=200, deadline=None)
@given(text=st.text(alphabet=st.sampled_from("ab. !?\n\r\t\"'.…。é\u0301👍"), min_size=1))
def test_sentences_are_parts_of_the_text_in_order(text: str) -> None:
    at = 0
    for start, end in sentence_spans(text):
        assert at <= start <= end <= len(text)
        at = end
    inside = sum(len(text[a:b].strip()) for a, b in sentence_spans(text))
    assert inside >= len(text.strip()) - text.strip().count(" ") - sum(map(text.count, "\n\r\t"))


@pytest.mark.parametrize("make", [wordpiece, byte_level, metaspace])
def test_words_are_joined_from_pieces_whatever_the_tokenizer(make: object) -> None:
    text = "Lighthouses don't refrigerate well-known astronomers; Holloway's tea did."
    tokens = tokenize(text, make())  # type: ignore[operator]
    assert len(tokens) > len(text.split())  # there are pieces to join
    words = {}
    for number, word in zip(tokens.words, tokens.word_texts, strict=True):
        if number >= 0:
            words[number] = word
    assert list(words.values()) == [
        *["Lighthouses", "don't", "refrigerate", "well", "-", "known", "astronomers", ";"],
        *["Holloway's", "tea", "did", "."],
    ]


def test_the_same_word_has_the_same_type_whatever_its_case_and_pieces() -> None:
    tokens = tokenize("Pluto and PLUTO and pluto", wordpiece())
    types = {}
    for word, kind in zip(tokens.word_texts, tokens.word_types, strict=True):
        types.setdefault(word.casefold(), set()).add(int(kind))
    assert all(len(kinds) == 1 for kinds in types.values())
    assert types["pluto"] != types["and"]


def test_every_token_has_the_class_of_the_method() -> None:
    text = 'Dr. Hill said, "Go home!" Then (at 5 p.m.) he left…'
    tokens = tokenize(text, wordpiece())
    named = dict(zip(tokens.starts, tokens.classes, strict=True))
    assert tokens.classes[0] == TokenClass.FIRST
    assert tokens.classes[-1] == TokenClass.SEPARATOR
    assert named[text.index(",")] == TokenClass.COMMA
    assert named[text.index(".")] == TokenClass.PUNCTUATION  # an abbreviation ends no sentence
    assert named[text.index("!")] == TokenClass.FINAL  # though a quotation mark follows
    assert named[text.index("(")] == TokenClass.PUNCTUATION
    assert named[text.index("…")] == TokenClass.FINAL
    assert named[text.index("Then")] == TokenClass.WORD


def test_separators_are_known_by_their_role_and_not_by_their_spelling() -> None:
    framed = tokenize("The sea.", byte_level(framed=True))
    assert framed.symbols[-1] == "</s>"
    assert framed.classes[-1] == TokenClass.SEPARATOR
    plain = tokenize("The sea.", byte_level())
    assert TokenClass.SEPARATOR not in plain.classes
    assert not plain.special.any()
    spelled = tokenize("The [SEP] sea.", wordpiece())
    assert list(spelled.special) == [True] + [False] * (len(spelled) - 2) + [True]


def test_sentences_follow_the_language() -> None:
    text = "Das ist z. B. ein Satz. Das ist noch einer."
    tokens = tokenize(text, wordpiece(), language="de")
    assert tokens.sentence_count == 2


@settings(max_examples=80, deadline=None)
@given(
    size=st.integers(8, 40),
    overlap=st.integers(0, 5),
    words=st.integers(1, 120),
)
def test_windows_share_their_edges_and_own_every_token_once(
    size: int, overlap: int, words: int
) -> None:
    text = " ".join(["the sea and the fog"] * 40)[: words * 4 + 3]
    for tokenizer in (WORDPIECE, BYTES, SPACES):
        whole = tokenize(text, tokenizer)
        cut = windows(whole, size, overlap)
        owned = np.concatenate([w.positions[w.own] for w in cut])
        assert sorted(owned.tolist()) == list(range(len(whole)))
        for window in cut:
            assert len(window.tokens) <= size
            assert window.tokens.classes[0] == TokenClass.FIRST
            assert (window.tokens.ids == whole.ids[window.positions]).all()
            assert window.tokens.special.sum() == whole.special.sum()
        for a, b in itertools.pairwise(cut):
            inner_a = a.positions[~a.tokens.special]
            inner_b = b.positions[~b.tokens.special]
            assert len(np.intersect1d(inner_a, inner_b)) == overlap


WORDPIECE, BYTES, SPACES = wordpiece(), byte_level(), metaspace()


def test_the_sample_text_has_something_for_every_measure() -> None:
    text = hs.sample_text()
    assert 380 <= len(text.split()) <= 480
    assert text.count("\n\n") >= 2
    assert text.count('"') >= 6
    assert "\n1. " in text
    tokens = tokenize(text, wordpiece())
    assert set(tokens.classes) == set(TokenClass)
    assert tokens.sentence_count >= 20


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("🇩🇪🇫a \u0301\u200d\ufe0f\u0600\u0903\n.👩"), max_size=12))
def test_flags_are_the_characters_that_unicode_says(text):
    expected = [match.span() for match in regex.finditer(r"\X", text)]
    flags = [
        span for span in expected if regex.search(r"\p{Regional_Indicator}", text[slice(*span)])
    ]
    found = [match.span() for match in WORD.finditer(text)]
    # What stands before a flag and belongs to it (a prepended mark) is one word with it.
    assert {end for _, end in flags} <= {end for _, end in found}


def test_a_text_of_flags_takes_time_in_proportion():
    """Half a minute where each flag counts all flags before it."""
    begun = time.process_time()
    assert len(WORD.findall("🇩🇪" * 32_000)) == 32_000
    assert time.process_time() - begun < 5


def test_a_word_of_many_pieces_is_held_once():
    tokens = tokenize("x" * 10_000, byte_level())
    assert len({id(word) for word in tokens.word_texts}) == 1
