"""The classes of words that repetitions are told apart by."""

import pytest

from headscope.pairs.tokens import WORD_CLASSES
from headscope.specimen import FOLDER
from headscope.text import WORD, tokenize
from headscope.words import WordClass, word_classes


def classes(text: str, language: str = "en") -> dict[str, str]:
    spans = [match.span() for match in WORD.finditer(text)]
    found = word_classes(text, spans, language)
    return {text[a:b]: one.name.lower() for (a, b), one in zip(spans, found, strict=True)}


def test_the_pairs_know_as_many_classes_as_there_are():
    assert len(WordClass) == WORD_CLASSES


def test_english_function_words_are_a_closed_list():
    found = classes("It's the king's horse, and he wouldn’t sell it for 1,200 pounds!")
    function = {word for word, kind in found.items() if kind == "function"}
    assert function == {"It's", "the", "and", "he", "wouldn’t", "it", "for"}
    assert {word for word, kind in found.items() if kind == "punctuation"} == {",", "!"}
    assert {"king's", "horse", "sell", "1", "200", "pounds"} <= {
        word for word, kind in found.items() if kind == "content"
    }


@pytest.mark.parametrize(
    ("text", "markup"),
    [
        ("the <unk> of the <unk>", {"<", "unk", ">"}),
        ("a <br/> b", {"<", "br", "/", ">"}),
        ('an <a href="there">link</a>', {"<", "a", "href", "=", '"', "there", ">", "/"}),
        ("salt &amp; sea", {"&", "amp", ";"}),
        ("the second @-@ hand", {"@", "-"}),
        ("it spells [UNK] here", {"[", "UNK", "]"}),
        ("if a < b and c > d, then 3 <5 and x<y", set()),
        ("R&D at AT&T; fine", set()),
    ],
)
def test_markup_is_what_nobody_says(text, markup):
    assert {word for word, kind in classes(text).items() if kind == "markup"} == markup


def test_other_languages_have_short_function_words_and_scripts_without_letters_none():
    found = classes("Der Wind und die Wellen, 42 an der Zahl", "de")
    assert {word for word, kind in found.items() if kind == "function"} == {
        "Der", "und", "die", "an", "der",
    }  # fmt: skip
    assert set(classes("我的書和他的書", "zh").values()) == {"content"}


def test_what_the_tokenizer_does_not_know_is_no_word():
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(FOLDER)
    tokens = tokenize("The ☃ sat. The ☃ ran.", tokenizer)
    unknown = tokens.ids == tokenizer.unk_token_id
    assert unknown.sum() == 2
    assert (tokens.word_classes[unknown] == WordClass.MARKUP).all()
    assert (tokens.word_classes[~unknown & ~tokens.special] != WordClass.MARKUP).all()
