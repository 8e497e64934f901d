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
    "it": """
        L'autunno dell'anno scorso non c'era nessuno.
        Un po' di pane, un'arancia e mezz'ora di riposo.
        «Dov'è l'uscita?», chiese; "nell'atrio", rispose l'uomo.
        Negli anni '80 e nell'800 tutto era diverso: l'8 marzo, all'11% ecc.
        Com’è bello l’Adriatico quand’è calmo!
        Po' alla volta, cent'anni dopo, s'è capito.
        Sant'Agata de' Goti è un'altra cosa (o quasi).
    """,
    "uk": """
        П'ятниця — день без комп'ютера й м'яса.
        Об’єднання з’явилося в кав’ярні «Кам’яниця».
        Прем'єр-міністр сказав: «Пам'ятаємо!» — і пішов.
        Сім'я з Кам'янця-Подільського (5 осіб) чекає о 10:30.
        Ціна зросла на 5%, тобто на 12,5 грн...
        Хто? Що? Чому в'язень п'є?
    """,
    "tr": """
        İzmir'in nüfusu %12 arttı, Ankara'nınki azaldı.
        TBMM'de 1990'larda 5'ten fazla parti vardı.
        "Gel!" dedi, 'belki' diye ekledi.
        Atatürk’ün evi Selânik’teydi (1881).
        Saat 17:30'da Kadıköy'e; sonra Üsküdar'a...
        Türkiye'nin 81 ilinden 30'u büyükşehirdir.
        Ne dedin? Ali'ye mi, Ayşe'ye mi?
    """,
    "fi": """
        EU:n päätös ja USA:ssa tehty tutkimus julkaistiin kello 10:30.
        ”Tule tänne”, sanoi äiti, ”ja heti!”
        Hinta nousi 5,5 % vuosina 1990–1995 (ks. taulukko 2).
        Vaa'an lukema oli 80:een asti oikea; s. 3.
        BKT:n kasvu, WHO:lle ja kk:n loppuun.
        »Niin», vastasi hän, »vai niin.»
    """,
    "ca": """
        L'home d'Olot col·labora amb l'intel·lectual.
        Vés-te'n! Digue'm què n'has de fer, dona'ls-hi.
        «S'ha acabat», digué; l’endemà no hi tornà.
        Paral·lelament, l'1% de l'aigua s'evapora.
        Hi ha d'altres coses (d'ací i d'allà), oi?
    """,
    "pl": """
        „Chodź tu!”, powiedziała, „i to zaraz”.
        W latach 1990–1995 ceny wzrosły o 5%, tj. o 12,50 zł.
        Kennedy'ego i Harry'ego znał każdy; O'Neilla – nie.
        Powieść „Lalka” (1890) i »Faraon«: co wybrać?
        Żółć, gęś, jaźń... i tyle!
    """,
    "fa": """
        کتاب‌ها را می‌خوانم؛ آیا تو هم می‌خوانی؟
        او گفت: «نمی‌دانم، شاید فردا».
        بهای نان ۱۲٫۵٪ (دوازده و نیم درصد) بالا رفت.
        خانه‌ای بزرگ، با باغچه‌هایی سبز!
        مُدَرِّسِ ما ساعت ۱۰:۳۰ آمد...
        ارزش آن ۱٬۲۵۰ تومان است.
    """,
    "th": """
        เมื่อวานนี้ฝนตกหนัก(มาก)ที่กรุงเทพฯ เวลา 10.30 น.
        เขาถามว่า "คุณจะไปไหน" แล้วก็เดินไปเรื่อย ๆ
        ราคาเพิ่มขึ้น 5 % หรือ 12.5 บาท/กิโลกรัม
        น้ำแข็ง ก๋วยเตี๋ยว และผู้ใหญ่บ้าน!
    """,
    "my": """
        မြန်မာနိုင်ငံသည် အရှေ့တောင်အာရှတွင် ရှိသည်။
        သူက "ဘယ်သွားမလဲ" ဟု မေးသည်၊ ငါ မသိ။
        ရန်ကုန်မြို့၌ လူဦးရေ (၅ သန်း) ကျော် နေထိုင်ကြ၏။
    """,
    "km": """
        ប្រទេសកម្ពុជាមានប្រជាជន១៧លាននាក់។
        គាត់សួរថា «តើអ្នកទៅណា?» ហើយដើរទៅ។
        ព្រះរាជាណាចក្រ(កម្ពុជា) ៥% ។
        ខ្ញុំ\u200bទៅ\u200bផ្សារ\u200bនៅ\u200bព្រឹក\u200bនេះ។
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
    "ru": """
        «Иди сюда!» — сказала она, — «и сейчас же».
        Цены выросли на 12,5 % в 1990–1995 гг. (см. с. 5).
        Жанна д'Арк и О'Генри; д’Артаньян тоже...
        В 10:30, т. е. утром, и/или позже?
        Кто-то, что-либо: „да“ и „нет“.
    """,
    "es": """
        ¿Qué hora es? —preguntó—. ¡Son las 10:30!
        «No lo sé», dijo; "tal vez" (o "quizás").
        El 12,5% de los años 1990–1995, i.e. 1.250,00 €.
        O'Higgins y D'Alessandro llegaron ayer...
        “Sí”, contestó ella: ‘claro’.
    """,
    "sv": """
        ”Kom hit!” sa hon, ”och det genast.”
        EU:s beslut kl. 10:30 gällde SJ:s tåg och 1:a klass.
        Priset steg med 12,5 % åren 1990–1995 (se s. 5).
        Vad är 'detta'? Jo, s.k. »citat» m.m.
    """,
    "ar": """
        قال: «لا أعرف، ربما غدًا»؛ ثم ذهب. هل تعرف أنت؟
        كِتَابٌ جَمِيلٌ جِدًّا (بنسبة ٥٪).
    """,
    "hi": """
        उसने कहा, "मुझे नहीं पता।" फिर वह चला गया।
        क़ीमत 12.5% बढ़ी; क्या यह सच है?
    """,
    "he": """
        צה"ל ודו״ח על ג'ירפה ורח׳ הרצל: "כן", אמר.
        בֵּית־סֵפֶר קָטָן (5%).
    """,
    "hy": """
        Ինչո՞ւ ես եկել, ասա՛ ինձ։
    """,
    "ko": """
        "모르겠어요," 그가 말했다. 가격이 5% 올랐다.
    """,
    "ga": """
        D'ith sé an t-arán; b'fhéidir go bhfuil sé in O'Connell.
    """,
    "nl": """
        's Morgens zag hij foto's van opa's auto: „mooi”.
    """,
    "da": """
        »Kom her!« sagde hun, »og det straks.«
    """,
    "hu": """
        „Gyere ide!” – mondta –, „de »most rögtön«”.
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


DRAWN = ("fr", "km", "en")  # in the fast tests; the others in the slow ones
LETTERS = {  # and marks
    "fr": "abcdeéèêëàâçïîôùûüœ",
    "it": "abcdeéèàìòù",
    "uk": "абвгґдеєжиіїйклмня",
    "tr": "abcçdegğhıiouöüsş",
    "fi": "aäeiouyöklmnpst",
    "ca": "abcdeéèàíïóòúüç",
    "pl": "aąbcćeęlłnńoósśzźż",
    "fa": "ابپتثجچحخدذرزژسشکگلمنوهیئؤ\u064b\u064e\u0650\u0651",
    "th": "กขคงจฉชซฐณดตถทธนบปผพฟภมยรลวศสหอฮะาำิีึืุูเแโใไ็่้๊๋์ๆฯ",
    "my": "ကခဂဃငစဆဇညတထဒနပဖဗမယရလဝသဟအါာိီုူေဲံ့း္်ျြွှ",
    "km": "កខគឃងចឆជញដតថទនបផពមយរលវសហអាិីឹឺុូួើេែៃោៅំះ៉៊់៌្",
    "en": "abcdefghijklmnopqrstuvwxyz",
    "de": "abcdeäöüßnrst",
    "cs": "aábcčdďeéěiínňrřsštťuúůyýzž",
    "ru": "абвгдеёжзийклмнопрстуфхцчшщъыьэюя",
    "es": "aábcdeéiínñoóuúü",
    "sv": "aåäbcdeöklmnrst",
    "hi": "कखगघचछजटडतदनपबमयरलवसहािीुूेैोौंँ़्",
}
# What stands between two words, W for a word and N for a number; of all languages, of those that write spaces, and of
# each language.
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
    "it": ["W'W", "W’W", "«W W»", "N%", "W'N", "“W”", "W..."],
    "uk": ["W'W", "W’W", "«W W»", "N%", "W — W", "„W W“"],
    "tr": ["W'W", "W’W", "N'W", "%N", "“W W”", "'W'"],
    "fi": ["W:w", "W'W", "N:w", "”W W”", "N %", "»W W»"],
    "ca": ["W'W", "W’W", "W·W", "«W W»", "W'N", "N%"],
    "pl": ["W'W", "„W W”", "»W W«", "N%", "W’W"],
    "fa": ["W\u200cW", "W\u200cW\u200cW", "«W W»", "W،", "W؛", "W؟", "۱۲٫۵٪", "۱٬۲۵۰"],
    "en": ["W's", "W'll", "“W W”", "N%", "£N", "W—W"],
    "de": ["„W W“", "»W W«", "N %", "‚W W‘", "W²"],
    "cs": ["„W W“", "»W W«", "N %", "W..."],
    "ru": ["«W W»", "W'W", "N %", "W — W", "N—N"],
    "es": ["«W W»", "“W W”", "¿W?", "¡W!", "N%", "W'W", "m²"],
    "sv": ["”W W”", "W:w", "N %", "W'W"],
    "hi": ["W।", "“W W”", "N%"],
}
FRENCH = {"W;", "W:", "W?", "W!"}  # French puts a space there
NO_SPACES = ["W", "WW", "W(W)", 'W"W"', "W,W", "N%", "N % W", "W W", "«W»", "W N.N W", "W\u200bW", "W / W", "W ( W"]


@st.composite
def texts(draw: st.DrawFn, language: str) -> str:
    if language in OWN:
        patterns = [pattern for pattern in SPACED if language != "fr" or pattern not in FRENCH] + OWN[language]
    else:
        patterns = NO_SPACES
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
