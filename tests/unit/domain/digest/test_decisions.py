"""What the user decided, in the user's words."""

from __future__ import annotations

import pytest
from tests.unit.domain.digest.sessions import event, prompt, said, shell, stream, tool

from everkept.domain.digest import digest_session
from everkept.domain.digest.words import asks
from everkept.domain.session import AgentEvent


def decided(*events: AgentEvent) -> list[tuple[str, str, str]]:
    return [(found.kind, found.quote, found.about) for found in digest_session(stream(events)).decisions]


@pytest.mark.parametrize(
    "text",
    [
        "Let's use SQLite for now.",
        "we'll go with option B",
        "Don't add any new dependencies.",
        "Use pathlib instead of os.path",
        "From now on, write tests first.",
        "I'd rather keep it simple",
        "Wir nehmen PostgreSQL.",
        "Bitte keine neuen Abhängigkeiten hinzufügen",
        "Ab jetzt immer mit Tests",
        "Mejor usemos SQLite",
        "No agregues dependencias nuevas.",
        "Vamos usar SQLite por enquanto",
        "Não mexa nesse arquivo.",
        "Utilisons plutôt SQLite",
        "N'ajoute pas de dépendances.",
        "SQLiteを使うことにします",
        "新しい依存関係は追加しないでください",
        "用 SQLite 而不是 Postgres",
        "以后都用中文写注释",
    ],
)
def test_statements_that_decide_are_quoted_in_seven_languages(text: str) -> None:
    assert decided(prompt(f"Please look at the parser.\n{text}")) == [("statement", text, "")]


@pytest.mark.parametrize(
    "text",
    [
        "Add a function multiply_numbers and a test for it",
        "Should we use SQLite instead?",
        "Why is the build failing",
        "```\nnever use this\n```",
        "> we should use the old one",
        "Der Test schlägt fehl",
        "¿Deberíamos usar SQLite en vez de Postgres?",
        "テストを実行してください",
        "请运行测试",
        "继续",
    ],
)
def test_tasks_questions_and_pasted_text_decide_nothing(text: str) -> None:
    assert decided(prompt(text)) == []


def test_a_brief_prompt_after_a_question_is_its_answer() -> None:
    events = [prompt("add a store"), said("Two ways.\n\nSQLite or Postgres?"), prompt("sqlite")]
    assert decided(*events) == [("answer", "sqlite", "SQLite or Postgres?")]


def test_a_question_or_a_long_prompt_after_a_question_is_no_answer() -> None:
    asked = said("SQLite or Postgres?")
    assert decided(prompt("go"), asked, prompt("what is faster?")) == []
    assert decided(prompt("go"), asked, prompt("fix the other bug " * 20)) == []


def test_answers_to_choices_are_quoted_with_the_question() -> None:
    told = tool("AskUserQuestion", "question", input="Which store? [SQLite | Postgres]", output="Which store?: SQLite")
    pairs = tool("AskUserQuestion", "question", output='User has answered: "Which store?"="SQLite". Go on.')
    assert decided(told) == decided(pairs) == [("answer", "SQLite", "Which store?")]


def test_plans_that_were_shown_are_quoted_with_what_became_of_them() -> None:
    events = [event("plan", "# Plan\n1. Move", detail="approved"), event("plan", "Other", detail="rejected")]
    assert decided(*events) == [("plan", "# Plan 1. Move", "plan approved"), ("plan", "Other", "plan rejected")]


def test_words_with_which_a_call_was_refused_are_quoted_once() -> None:
    call = shell("npm i x", "The user doesn't want to proceed.\nthe user said:\nno new packages", "denied")
    assert decided(prompt("go"), call) == [("refusal", "no new packages", "denied: npm i x")]
    assert decided(prompt("go"), call, prompt("no new packages")) == [("refusal", "no new packages", "denied: npm i x")]


def test_a_prompt_after_an_interruption_corrects_unless_it_only_goes_on() -> None:
    call = shell("npm i x", "", "interrupted")
    assert decided(prompt("go"), call, prompt("without packages")) == [
        ("refusal", "without packages", "interrupted: npm i x")
    ]
    assert decided(prompt("go"), call, prompt("please continue")) == []
    assert decided(prompt("go"), call, prompt("Yes.")) == []


def test_what_nobody_typed_decides_nothing() -> None:
    assert decided(prompt("never stop before the tests pass", genuine=False)) == []
    assert decided(prompt("always use tabs", evidence=False)) == []
    assert decided(prompt("use tabs instead", parent="ses-0", session="sub-1"), prompt("go")) == []


@pytest.mark.parametrize(
    ("sentence", "asked"),
    [
        ("Would you like me to add tests", True),
        ("Let me know which option you prefer.", True),
        ("Soll ich das umsetzen?", True),
        ("¿Quieres que lo haga", True),
        ("Dois-je continuer", True),
        ("実装しましょうか。", True),
        ("需要我继续吗", True),
        ("Let me know if you have any other questions.", False),
        ("Is there anything else I can help with?", False),
        ("All tests pass.", False),
    ],
)
def test_questions_are_told_from_politeness(sentence: str, asked: bool) -> None:
    assert asks(sentence) is asked
