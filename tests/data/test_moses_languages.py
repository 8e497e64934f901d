"""What Moses separates is written together again as each language writes it: sentences and drawn text."""

import re
import unicodedata

import pytest
from drawn import draws
from hypothesis import given
from hypothesis import strategies as st

from hat_fairseq.data.text import escape_control_tokens, restore_control_tokens
from hat_fairseq.data.word_tokenizer import word_tokenizer

SENTENCES = {
    "fr": """
        L'hôtel n'est pas loin d'ici : c'est à dix minutes !
        « Qu'est-ce qu'il y a ? » demanda-t-elle ; il n'en savait rien.
        Aujourd’hui, l’usine d’Arras emploie 1 250 personnes, soit 12,5 % de moins qu’en 2019.
        Est-ce vrai ?! Jusqu'où ira-t-on...
        Le train de 18:45 (quai nº 3) part pour l'Île-de-France.
        Elle a lu l'« Étranger » et l'a trouvé « très beau ».
        Presqu'île, prud'homme et entr'acte s'écrivent ainsi.
        Rendez-vous à l'accueil, s'il vous plaît.
        L'adresse est http://exemple.org, dit-on.
    """,
    "en": """
        I don't think it's ready: "Not yet," she said, "but soon!"
        The boys' room (No. 5) cost $12.50, i.e. 5% more.
        They’d’ve said “maybe,” wouldn’t they?
        From 1990–1995, in the '90s, at 10:30, and/or later...
        Rock 'n' roll isn't dead; O'Neill's e-mail says so.
        The naïve café is at 45° north, at 3 °C.
        It cost €5 (and £6) in Covent Garden—or did it?
        See [3] and sales@example.org, #7.
    """,
    "de": """
        „Komm her!“, sagte sie, „und zwar sofort.“
        Er fragte: »Wer ist’s?« – »Ich«, kam es zurück.
        Das sind 12,5 % bzw. 1.250,00 € (laut § 5 Abs. 2).
        Von 1990–1995, um 10:30 Uhr und/oder später.
        Ich hab's gewusst; Hans' Auto, Müllers Hund.
        "Na ja", meinte er.
    """,
    "cs": """
        „Pojď sem!“ řekla, „a hned.“
        Stálo to 12,5 % platu, tj. 1 250 Kč (viz str. 5).
        V letech 1990–1995 a v 10:30 se nic nedělo...
        Co je to »zvláštní« slovo? Je-li tomu tak, pak ano.
        Přišel D'Artagnan, O'Neill a ostatní.
    """,
    "es": """
        ¿Qué hora es? —preguntó—. ¡Son las 10:30!
        «No lo sé», dijo; "tal vez" (o "quizás").
        El 12,5% de los años 1990–1995, i.e. 1.250,00 €.
        O'Higgins y D'Alessandro llegaron ayer...
        “Sí”, contestó ella: ‘claro’.
    """,
}
# Sentences whose spaces cannot be known from their words.
LOST = {
    "¿Qué hora es? —preguntó—. ¡Son las 10:30!",
    "From 1990–1995, in the '90s, at 10:30, and/or later...",  # as many texts have a space before the dots
    "Rock 'n' roll isn't dead; O'Neill's e-mail says so.",
}


def come_back(text: str, language: str, tokenizer: str = "moses") -> str:
    words = word_tokenizer(tokenizer, language)
    separated = words.tokenize(escape_control_tokens(text))
    assert separated.replace(" ", "") == escape_control_tokens(text).replace(" ", "")
    return words.detokenize(restore_control_tokens(separated))


def sentences(language: str) -> list[str]:
    return [line.strip() for line in SENTENCES[language].strip().split("\n")]


@pytest.mark.parametrize("language", SENTENCES)
def test_sentences_come_back_as_they_were_written(language: str) -> None:
    changed = {text: back for text in sentences(language) if (back := come_back(text, language)) != text}
    assert changed.keys() == LOST & set(sentences(language)), changed
    whole = " ".join(text for text in sentences(language) if text not in LOST)
    assert come_back(whole, language) == whole


@pytest.mark.parametrize("language", SENTENCES)
def test_accents_that_are_characters_of_their_own_come_back(language: str) -> None:
    """They are, in the normalisation form NFD."""
    for text in set(sentences(language)) - LOST:
        decomposed = unicodedata.normalize("NFD", text)
        assert come_back(decomposed, language) == decomposed


DRAWN = ("fr", "en")  # in the fast tests; the others in the slow ones
LETTERS = {  # and marks
    "fr": "abcdeéèêëàâçïîôùûüœ",
    "en": "abcdefghijklmnopqrstuvwxyz",
    "de": "abcdeäöüßnrst",
    "cs": "aábcčdďeéěiínňrřsštťuúůyýzž",
    "es": "aábcdeéiínñoóuúü",
}
# What stands between two words, W for a word and N for a number; of all languages, and of each.
SPACED = [
    "W",
    "W,",
    "W;",
    "W:",
    "(W W)",
    '"W W"',
    "N:N",
    "N,N",
    "[W]",
    "W-W",
    "W?",
    "W!",
    "W. W.",
    "N/N",
    "W – W",
    "W@W",
]
OWN = {
    "fr": ["W'W", "W’W", "« W W »", "N %", "W ?", "W !", "W :", "W ;", "W'« W »", "“W”", "W...", "W_W"],
    "en": ["W's", "W'll", "“W W”", "N%", "£N", "W—W"],
    "de": ["„W W“", "»W W«", "N %", "‚W W‘", "W²"],
    "cs": ["„W W“", "»W W«", "N %", "W..."],
    "es": ["«W W»", "“W W”", "¿W?", "¡W!", "N%", "W'W", "m²"],
}
FRENCH = {"W;", "W:", "W?", "W!"}  # French puts a space there


@st.composite
def texts(draw: st.DrawFn, language: str) -> str:
    patterns = [pattern for pattern in SPACED if language != "fr" or pattern not in FRENCH] + OWN[language]
    letters = LETTERS[language]
    words = st.text(letters, min_size=4, max_size=8).filter(lambda text: unicodedata.category(text[0])[0] == "L")

    def filled(match: re.Match[str]) -> str:
        if match[0] == "N":
            return str(draw(st.integers(10, 9999)))
        word = draw(words)
        if match[0] == "W" and draw(st.booleans()):
            word = word[0].upper() + word[1:] if len(word[0].upper()) == 1 else word
        return unicodedata.normalize(draw(st.sampled_from(["NFC", "NFD"])), word)

    chosen = draw(st.lists(st.sampled_from(patterns), min_size=1, max_size=8))
    return " ".join(re.sub("[WNw]", filled, pattern) for pattern in chosen)


@pytest.mark.parametrize(
    "language", [each if each in DRAWN else pytest.param(each, marks=pytest.mark.slow) for each in LETTERS]
)
def test_drawn_text_comes_back_as_it_was_written(language: str) -> None:
    @draws
    @given(texts(language))
    def check(text: str) -> None:
        assert come_back(text, language) == text

    check()


@pytest.mark.parametrize("language", ["it", "uk", "th"])
def test_other_languages_are_refused(language: str) -> None:
    with pytest.raises(ValueError, match=f"moses knows cs, de, en, es, fr, zh, not {language}: take none"):
        word_tokenizer("moses", language)
