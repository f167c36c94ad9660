"""F: search. What was said is found, whatever the letters; what was not asked for does not crowd it out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.faults.adapter import MemorySystem, Message, OpensSystems, Rejected, contents, let_it_work, need
from tests.faults.everkept_system import EverkeptSystem
from tests.faults.provider import DIMENSIONS, Provider
from tests.stubs.door_client import DoorClient, error_of
from tests.stubs.llm_server import Fail

NOISE = "something else entirely is here"
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def tell(system: MemorySystem, *texts: str, thread: str = "t1", subject: str = "ana", **more: Any) -> None:
    system.add(thread, [Message(content=text, **more) for text in texts], subject=subject)


def found(system: MemorySystem, query: str, **more: Any) -> list[str]:
    return [hit.text for hit in system.search(query, **{"subject": "ana", **more})]


def nothing_or_refused(system: MemorySystem, query: str, word: str, **more: Any) -> bool:
    """No hits, or a refusal that names what is wrong."""
    try:
        return found(system, query, **more) == []
    except Rejected as refused:
        return word in str(refused)


# ---- F01: signs


SIGNS = [
    ("look in src/main/app.py", "src/main/app.py"),
    ("look in src/main/app.py", "app.py"),
    ("this is state-of-the-art", "state-of-the-art"),
    ("O'Brien called", "O'Brien"),
    ("O’Brien phoned", "O'Brien phoned"),
    ("don’t panic", "don't panic"),
    ("mail ana@example.org", "ana@example.org"),
    ("see https://x.org/a?b=c&d=1", "x.org/a?b=c"),
    ("fixed #1234 today", "#1234"),
    ("v1.2.3-rc1 is out", "v1.2.3-rc1"),
    ("it cost $1,200.50", "$1,200.50"),
    ("50% off", "50%"),
    ("I write C++ and C#", "C++"),
    ("I write C++ and C#", "C#"),
    ('he said "hello there"', '"hello there"'),
    ('an unbalanced " quote', '"quote'),
    ("rock AND roll", "AND roll"),
    ("near the river", "NEAR(river, 3)"),
    ("to be or not to be", "NOT be"),
    ("either tea OR milk", "tea OR"),
    ("call get_user_name()", "get_user_name()"),
    ("call getUserName()", "getUserName"),
    ("in C:\\Users\\ana", "C:\\Users\\ana"),
    ("set $HOME/bin", "$HOME/bin"),
    ("the pattern a.*b", "a.*b"),
    ("Robert'); DROP TABLE facts;--", "Robert'); DROP TABLE facts;--"),
    ("own: value", "own:value"),
    ("prefix* here", "prefix*"),
    ("^start of it", "^start"),
    ("{own} : x1", "{own} : x1"),
    ("a 🎉 party", "🎉"),
    ("we are 👨‍👩‍👧", "👨‍👩‍👧"),
    ("fine 👍🏽", "👍"),
    ("I am from 🇵🇹", "🇵🇹"),
    ("room 7", "7"),
    ("plan B", "B"),
    ("a+b=c", "a+b"),
    ("tab\tand\nline", "tab line"),
    ("zero\u200bwidth", "zerowidth"),
    ("soft\u00adhyphen", "softhyphen"),
    ("ＦＵＬＬ width", "full"),
    ("ﬁne ligature", "fine"),
    ("Straße in Köln", "strasse koln"),
    ("null undefined", "null"),
    ("%s %d {0}", "%s"),
    ("-dash first", "-dash"),
    ("two  spaces", "two spaces"),
]


def test_f01_every_sign_is_found_by_itself(system: MemorySystem) -> None:
    """Among texts that hold none of it: the right one comes first."""
    for n, (text, _) in enumerate(SIGNS):
        tell(system, NOISE, text, thread=f"t{n}", subject=f"s{n}")
    missed = [
        (query, hits)
        for n, (text, query) in enumerate(SIGNS)
        if (hits := found(system, query, subject=f"s{n}"))[:1] != [text]
    ]
    assert missed == []


NO_WORDS = [
    "",
    " ",
    "\n\t",
    '"',
    "???",
    "…",
    "*",
    "(",
    ")",
    "\\",
    "%",
    "_",
    "--",
    "/* */",
    "' '",
    "\u200b",
    "\x00",
    "{}",
]
ODD = [
    "x" * 20_000,
    "word " * 4_000,
    "漢字" * 10_000,
    "🎉" * 6_000,
    'a"' * 5_000,
    "NEAR(" * 2_000 + "lake",
    "AND OR NOT",
]


def test_f01_a_query_is_answered_or_refused_in_words_and_nothing_breaks(system: MemorySystem) -> None:
    tell(system, "we met at the lake")
    for query in NO_WORDS:
        assert nothing_or_refused(system, query, "query")
    for query in ODD:
        assert isinstance(found(system, query), list)
    assert found(system, "lake " + "x" * 19_000) == ["we met at the lake"]
    with pytest.raises(Rejected, match="20,000"):
        found(system, "lake " * 10_000)
    assert found(system, "lake") == ["we met at the lake"]


# ---- F02: languages


LANGUAGES = [
    ("zh", "我上个月搬到了柏林", "我现在住在哪里？柏林"),
    ("zh", "我喜欢吃苹果", "苹果"),
    ("zh", "我在中华人民共和国工作", "人民"),
    ("ja", "昨日東京タワーに行きました", "東京タワーにいつ行った？"),
    ("ja", "ｶﾒﾗを買った", "カメラ"),
    ("ja", "りんごが好き", "リンゴ"),
    ("ko", "저는 서울에 살아요", "서울"),
    ("th", "ฉันย้ายไปอยู่เชียงใหม่เมื่อเดือนที่แล้ว", "เชียงใหม่"),
    ("th", "ฉันชอบแมวมาก", "แมว"),
    ("ar", "انتقلت إلى القاهرة في مايو", "أين القاهرة؟"),
    ("ar", "ذهبت إلى المدرسة", "مدرسة"),
    ("ar", "أَسْكُنُ في دِمَشْق", "دمشق"),
    ("ar", "القطة في البيت", "بيت"),
    ("ar", "زرت الأردن والقاهرة", "القاهرة"),
    ("hi", "मैं मुंबई में रहता हूँ", "मुंबई"),
    ("hi", "मुझे ज़मीन चाहिए", "जमीन"),
    ("hi", "मेरी बिल्ली सो रही है", "बिल्ली"),
    ("pt", "Mudei para São João da Boa Vista", "sao joao"),
    ("pt", "Meu coração é teu", "coracao"),
    ("pt", "Gosto de pa\u0303o", "pão"),
    ("pt", "Onde está a ação", "AÇÃO"),
    ("es", "El niño tiene un año", "nino"),
    ("fr", "L’été à Besançon", "besancon"),
    ("de", "Ich wohne in der Straße", "strasse"),
    ("ru", "Я живу в Москве", "Москва"),
    ("el", "Μένω στην Αθήνα", "ΑΘΗΝΑ"),
    ("he", "אני גר בירושלים", "ירושלים"),
    ("tr", "İstanbul'da yaşıyorum", "istanbul"),
    ("vi", "Tôi sống ở Hà Nội", "ha noi"),
    ("pl", "Mieszkam w Łodzi", "lodzi"),
    ("ta", "நான் சென்னையில் வசிக்கிறேன்", "சென்னை"),
    ("fa", "من در تهران زندگی می‌کنم", "تهران"),
    ("ur", "میں کراچی میں رہتا ہوں", "کراچی"),
    ("km", "ខ្ញុំរស់នៅភ្នំពេញ", "ភ្នំពេញ"),
    ("my", "ကျွန်တော်ရန်ကုန်မှာနေတယ်", "ရန်ကုန်"),
    ("lo", "ຂ້ອຍຢູ່ວຽງຈັນ", "ວຽງຈັນ"),
    ("ka", "მე თბილისში ვცხოვრობ", "თბილისში"),
    ("am", "አዲስ አበባ እኖራለሁ", "አዲስ"),
    ("hy", "Ես ապրում եմ Երևանում", "Երևանում"),
]


def test_f02_every_language_has_real_hits(system: MemorySystem) -> None:
    """Each in a memory of its own, and all in one memory of 39 texts."""
    for n, (_, text, _) in enumerate(LANGUAGES):
        tell(system, NOISE, text, thread=f"t{n}", subject=f"s{n}")
        tell(system, text, thread=f"all-{n}", subject="all")
    alone = [q for n, (_, text, q) in enumerate(LANGUAGES) if found(system, q, subject=f"s{n}")[:1] != [text]]
    together = [q for _, text, q in LANGUAGES if text not in found(system, q, subject="all", limit=5)]
    assert (alone, together) == ([], [])


# ---- F03: one half of the search alone


@pytest.mark.own_engine("its choice of an embedder")
def test_f03_a_hit_by_words_alone_and_a_hit_by_meaning_alone_are_both_whole(
    another: OpensSystems, provider: Provider
) -> None:
    system = another(embedder=f"openai:vectors:{DIMENSIONS}")
    tell(
        system, "The invoice is XK-7781-Q.", "My feline companion sleeps all day.", *[f"{NOISE} {n}" for n in range(60)]
    )
    let_it_work(system)
    assert found(system, "XK-7781-Q")[0] == "The invoice is XK-7781-Q."
    provider.outage(Fail(status=503))
    assert found(system, "invoice XK-7781-Q")[0] == "The invoice is XK-7781-Q."
    provider.clear()
    assert all(text.strip() for text in found(system, "cat"))


def test_f03_what_the_vectors_find_brings_its_text(system: MemorySystem) -> None:
    tell(system, "My cat sleeps all day.", *[f"The invoice number {n} was paid in full" for n in range(40)])
    let_it_work(system)
    assert "My cat sleeps all day." in found(system, "kitten", limit=5)


# ---- F04: ranking


def test_f04_an_old_answer_outranks_newer_chatter(system: MemorySystem) -> None:
    need(system, "times")
    said = Message(content="My passport number is X1234567.", occurred_at=NOW - timedelta(days=900))
    system.add("old", [said], subject="ana")
    for n in range(60):
        chatter = Message(content=f"What a day, number {n}", occurred_at=NOW - timedelta(minutes=60 - n))
        system.add("new", [chatter], subject="ana")
    let_it_work(system)
    assert "X1234567" in found(system, "What is my passport number?")[0]


def test_f04_a_decision_outranks_the_log_that_led_to_it(system: MemorySystem) -> None:
    log = "We talked about the database. Somebody asked about the database again. " * 12
    tell(
        system, log, "We decided to use PostgreSQL as the database.", "Let us look at the database tomorrow.", log + "!"
    )
    assert found(system, "Which database did we decide to use?")[0] == "We decided to use PostgreSQL as the database."


def test_f04_what_was_said_nine_times_is_returned_once(system: MemorySystem) -> None:
    for n in range(3):
        tell(system, *["I live in Lisbon."] * 3, "I like green tea.", thread=f"t{n}")
        let_it_work(system)
    hits = [(hit.kind, hit.text) for hit in system.search("Where do I live? Lisbon", subject="ana")]
    assert len(hits) == len(set(hits)), hits
    assert ("message", "I live in Lisbon.") in hits
    assert ("fact", "The speaker lives in Lisbon.") in hits


@pytest.mark.own_engine("the block for a prompt")
def test_f04_a_prompt_says_one_sentence_once(another: OpensSystems) -> None:
    """Not as a turn, as the quote of a fact, as an episode and as a summary; what is in sight is not told again."""
    system = another(model="none")
    assert isinstance(system, EverkeptSystem)
    for n in range(3):
        tell(system, *["I live in Lisbon."] * 3, thread=f"t{n}")
        let_it_work(system)
    tell(system, "Where do I live?", thread="now")
    answer = system.call("recall", query="Where do I live?", subject="ana")
    assert answer["text"].count("I live in Lisbon") == 1
    assert answer["text"].count("lives in Lisbon") == 1


# ---- F05: limits and budgets


def test_f05_no_result_and_more_results_than_there_are(system: MemorySystem) -> None:
    tell(system, "one lake", "two lakes", "three lakes")
    assert len(found(system, "lake", limit=100)) == 3
    assert len(found(system, "lake", limit=1)) == 1
    for limit in (0, -1):
        assert nothing_or_refused(system, "lake", "limit", limit=limit)
    assert found(system, "lake", subject="nobody") == []


@pytest.mark.own_engine("the block for a prompt")
def test_f05_a_budget_smaller_than_one_item_says_so_and_is_kept(everkept: EverkeptSystem) -> None:
    tell(everkept, "the lake " * 200, "a short lake")
    for tokens in (1, 5, 20, 60, 100_000):
        answer = everkept.call("recall", query="lake", subject="ana", tokens=tokens, held_back=True)
        assert answer["tokens"] <= tokens
        shown = len(answer["results"]) + len([h for h in answer["held_back"] if h["reason"] == "over_budget"])
        assert shown == 2, tokens
    with pytest.raises(Rejected, match="tokens"):
        everkept.call("recall", query="lake", subject="ana", tokens=0)


@pytest.mark.own_engine("its HTTP door")
@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("query=lake&limit=1&limit=2", "limit"),
        ("query=lake&query=sea", "query"),
        ("query=lake&tokens=1&tokens=1", "tokens"),
        ("query=lake&limit=0", "limit"),
        ("query=lake&limit=101", "limit"),
        ("query=lake&limit=ten", "limit"),
        ("query=lake&tokens=0", "tokens"),
        ("query=lake&as_of=2026", "as_of"),
        ("query=lake&as_of=1767225600", "as_of"),
        ("query=lake&as_of=1e9", "as_of"),
        ("query=lake&as_of=2026-01-01", "as_of"),
        ("query=lake&known_at=0", "known_at"),
        ("query=lake&subject=a&subject=b", "subject"),
        ("limit=3", "query"),
    ],
)
def test_f05_a_word_that_is_given_twice_or_means_nothing_is_refused(query: str, word: str) -> None:
    answer = DoorClient()("GET", f"/v1/recall?{query}")
    assert answer.status_code == 422
    assert error_of(answer)["details"]["field"].startswith(word)


@pytest.mark.own_engine("its HTTP door")
def test_f05_an_erase_that_is_asked_for_both_ways_erases_nothing() -> None:
    door = DoorClient()
    door("POST", "/v1/threads/t/messages", json={"content": "hi", "subject": "a"})
    assert door("DELETE", "/v1/threads/t?dry_run=true&dry_run=false").status_code == 422
    assert door("GET", "/v1/threads/t").status_code == 200


# ---- F06: at once


def test_f06_what_was_just_said_is_found_before_any_work_and_after_a_restart(
    system: MemorySystem, provider: Provider
) -> None:
    provider.outage()
    tell(system, "We met at the lake.")
    assert found(system, "lake") == ["We met at the lake."]
    system.kill()
    system.open()
    assert found(system, "lake") == ["We met at the lake."]
    tell(system, "Then it rained at the harbour.")
    assert found(system, "harbour") == ["Then it rained at the harbour."]
    system.close()
    system.open()
    assert found(system, "lake")[0] == "We met at the lake."
    assert found(system, "harbour")[0] == "Then it rained at the harbour."


def test_f06_every_message_of_a_burst_is_found_as_soon_as_it_is_accepted(system: MemorySystem) -> None:
    for n in range(30):
        tell(system, f"the code of box {n} is K{n}Z")
        assert f"the code of box {n} is K{n}Z" in found(system, f"K{n}Z")


def test_f06_what_another_process_wrote_is_found(another: OpensSystems) -> None:
    one, two = another(), another()
    tell(one, "We met at the lake.")
    assert found(two, "lake") == ["We met at the lake."]
    tell(two, "Then it rained at the harbour.", thread="t2")
    assert found(one, "harbour") == ["Then it rained at the harbour."]


# ---- F07: the past


def test_f07_a_question_about_the_past_is_answered_from_the_past(system: MemorySystem) -> None:
    need(system, "times", "end")
    moves = [("Berlin", 300), ("Porto", 200), ("Lisbon", 100)]
    now = datetime.now(UTC)
    for city, days_ago in moves:
        said = Message(content=f"I live in {city}.", occurred_at=now - timedelta(days=days_ago))
        system.add(city, [said], subject="ana")
        system.end(city)
        let_it_work(system)
    for days_ago, right in ((250, "Berlin"), (150, "Porto"), (0, "Lisbon")):
        when = now - timedelta(days=days_ago)
        hits = system.search("Where did I live at that time?", subject="ana", as_of=when)
        assert {c for c, _ in moves for hit in hits if hit.kind == "fact" and c in hit.text} == {right}
        later = {c for c, ago in moves if ago < days_ago}
        assert not any(c in hit.text for c in later for hit in hits), (days_ago, hits)
    assert len(contents(system, "ana", "message")) == 3
