from concurrent.futures import ThreadPoolExecutor

import pytest

from everkept.domain.text import TERM_PUNCTUATION, fold, query_terms, stem, terms, words


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("the foo_bar call", "foo_bar"),
        ("the foo_bar call", "bar"),
        ("foo-bar it is", "foo-bar"),
        ("foo-bar it is", "foo"),
        ("see src/a/b.py there", "b.py"),
        ("see src/a/b.py there", "src/a/b.py"),
        ("see src/a/b.py there", "b"),
        ("written in C++ today", "C++"),
        ("written in C# today", "c#"),
        ("I don't know", "dont"),
        ("I dont know", "don't"),
        ("O'Neil came", "oneil"),
        ("O'Neil came", "Neil"),
        ("Ann’s dog", "Ann"),
        ("call getUserName now", "user name"),
        ("call getUserName now", "getusername"),
        ("it cost 1,000 euros", "1000"),
        ("pi is 3.14", "3.14"),
        ("at 10:30 sharp", "10:30"),
        ("mail me@x.org please", "me@x.org"),
        ("so happy 😀!", "😀"),
        ("🤖 speaks", "🤖"),
        ("from 🇩🇪 with love", "🇩🇪"),
        ("naïve café", "NAIVE CAFE"),
        ("Straße", "strasse"),
        ("ＡＢＣ１２３", "abc123"),
        ("São Paulo é enorme", "sao paulo"),
        ("coração partido", "coracao"),
        ("我住在柏林", "柏林"),
        ("我有一只黑猫", "猫"),
        ("東京タワーへ行った", "タワー"),
        ("うちの猫は元気", "猫の名前"),
        ("ฉันชอบแมวมาก", "แมว"),
        ("القطة في البيت", "قطة"),
        ("मेरी बिल्ली सो रही है", "बिल्ली"),
        ("고양이를 좋아해요", "고양이"),
        ("кошки спят", "кошка"),
        ("ຂ້ອຍມັກແມວ", "ແມວ"),
        ("ខ្ញុំចូលចិត្តឆ្មា", "ឆ្មា"),
        ("ကျွန်တော်ကြောင်ချစ်တယ်", "ကြောင်"),
    ],
)
def test_terms_are_found_by_whole_and_by_part(said: str, asked: str) -> None:
    assert set(query_terms(asked)) & set(terms(said))


@pytest.mark.parametrize(
    "text",
    [
        '"',
        "'",
        "a/b",
        "AND",
        "NEAR(",
        "NEAR(a b, 2)",
        "*",
        "^x",
        "-x",
        "a:b",
        "(",
        "",
        " ",
        "\0",
        "\ud800",
        "😀",
        "x" * 20_000,
        "漢" * 20_000,
        "a-" * 10_000,
        "'" * 100,
        '"a" OR "b"',
        "{own} : x",
        "\u0301\u0301",
        "a\u0301" * 1000,
    ],
)
def test_terms_hold_no_space_or_quote_and_never_raise(text: str) -> None:
    allowed = set(TERM_PUNCTUATION)
    for term in terms(text) + query_terms(text):
        assert term
        assert len(term) <= 64
        assert '"' not in term
        assert not any(c.isspace() for c in term)
        assert all(c.isalnum() or c in allowed for c in term if c.isascii())


def test_terms_keep_repeats_and_order() -> None:
    assert terms("dogs love dog food") == ["dog", "love", "dog", "food"]


def test_query_terms_leave_stop_words_out_unless_nothing_is_left() -> None:
    assert query_terms("What is the name of the dog?") == ["name", "dog"]
    assert query_terms("Wie heißt der Hund von Anna?") == ["heisst", "hund", "anna"]
    assert query_terms("Who are you?") == ["who", "ar", "you"]


def test_query_terms_come_once() -> None:
    assert query_terms("dog dogs dog") == ["dog"]


def test_words_are_folded_and_not_stemmed() -> None:
    assert words("Running Dogs, naïvely") == ["running", "dogs", "naively"]


def test_stem_follows_the_script() -> None:
    assert stem("running") == "run"
    assert stem("кошками") == stem("кошка")
    assert stem("猫") == "猫"


def test_stemming_in_several_threads_gives_what_one_thread_gives() -> None:
    words = [f"{stem}{end}{i % 7}" for i, stem in enumerate(["walk", "relat", "connect", "hopp", "organis"] * 400)
             for end in ("ing", "ational", "ions", "fulness")]  # fmt: skip
    expected = [terms(w) for w in words]
    stem.cache_clear()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda chunk: [terms(w) for w in chunk], [words] * 4))
    assert found == [expected] * 4


def test_a_line_that_is_not_ascii_changes_nothing_of_the_others() -> None:
    lines = ["$ make LINT", "→ failed (exit code 2)", "src/getUser.ts: l’été naïve", "日本語のカタカナ, 1,234.5"]
    assert terms("\n".join(lines[:2])) == [*terms(lines[0]), *terms(lines[1])]
    assert words("\n".join(lines)) == [word for line in lines for word in words(line)]
    assert fold("\n".join(lines)).split("\n") == [fold(line) for line in lines]


@pytest.mark.parametrize(
    ("said", "parts"),
    [
        ("getUserName", ["get", "user", "name"]),
        ("x" * 61 + "aBc", ["x" * 61 + "a"]),  # its seam is among the first 64 characters
        ("x" * 62 + "aBc", []),  # and here it is not
        ("plain words", []),
        ("HTTP2Server", []),
    ],
)
def test_words_that_camel_case_holds_are_terms_of_their_own(said: str, parts: list[str]) -> None:
    assert terms(said)[1 if " " not in said else 2 :] == [stem(part) for part in parts]
