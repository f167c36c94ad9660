"""What is proposed after a session by rule, and what is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.bench.review_quality import Store
from tests.unit.domain.digest.sessions import edit, failing, prompt, said, shell, stream

from everkept.domain.review.observe import observe
from everkept.domain.review.patch import patched
from everkept.domain.review.propose import DRAFTS_MAX, propose
from everkept.domain.review.values import Draft, KnownPage, Reviewed
from everkept.domain.session import AgentEvent

PNPM = ("use pnpm, not npm", "No, pnpm instead of npm please", "never npm, only pnpm")
DOWN = [
    failing("pnpm test", "Error: connect ECONNREFUSED 127.0.0.1:5432"), shell("docker compose up -d db"),
    shell("pnpm test", "ok"),
]  # fmt: skip
RELEASE = [shell("npm version 1.2.3"), shell("npm run build"), shell("git push --tags"), shell("npm publish")]


def after(*sessions: Sequence[AgentEvent], pages: Sequence[KnownPage] = (), rejected: Sequence[str] = ()) -> Reviewed:
    """What is proposed after the last of these sessions."""
    store = Store()
    made = Reviewed(observations=(), drafts=())
    for number, events in enumerate(sessions, 1):
        told = [
            prompt("Please rework the import of the orders"),
            edit("/repo/a.py"),
            *events,
            edit("/repo/a.py"),
            said("Done."),
        ]
        own = observe(number, stream(told))
        made = propose(own, store.seen_with(own), pages, frozenset(rejected))
    return made


def page(body: str, **fields: Any) -> KnownPage:
    values: dict[str, Any] = {
        "id": 1, "kind": "rule", "slug": "packages", "title": "Packages", "version": 3, "body": body, "pinned": False,
        "author": "api", "updated_at_us": 1, **fields,
    }  # fmt: skip
    return KnownPage(**values)


def only(made: Reviewed) -> Draft:
    (draft,) = made.drafts
    return draft


def test_a_correction_in_two_sessions_is_a_rule_with_both_as_evidence() -> None:
    draft = only(after([prompt(PNPM[0])], [prompt(PNPM[1])]))
    assert (draft.action, draft.kind, draft.slug, draft.base) == ("create", "rule", "pnpm-not-npm", None)
    assert draft.title == "Use pnpm, not npm"
    assert draft.body == (
        "- Use pnpm, not npm. The user put this right in 2 sessions.\n"
        "  > “No, pnpm instead of npm please” — evt_2_3\n"
    )  # fmt: skip
    assert [(quote.stream, quote.text) for quote in draft.evidence] == [(2, PNPM[1]), (1, PNPM[0])]
    assert draft.confidence == 0.67


@pytest.mark.parametrize("events", [[prompt(PNPM[0]), prompt(PNPM[1])], DOWN, RELEASE])
def test_what_one_session_shows_gives_nothing(events: list[AgentEvent]) -> None:
    made = after(events)
    assert (made.drafts, made.refused) == ((), ())
    assert made.note


def test_the_same_wish_in_other_words_is_counted_together() -> None:
    draft = only(after([prompt("don't push to main")], [prompt("never push to main directly")]))
    assert draft.body.startswith("- Don't push to main. The user put this right in 2 sessions.")


def test_a_wish_and_its_opposite_in_turn_give_nothing() -> None:
    sessions = [[prompt("use pnpm, not npm")], [prompt("use npm, not pnpm")]]
    assert after(*sessions, *sessions).drafts == ()


def test_a_mind_that_changed_and_stayed_is_followed() -> None:
    before, since = [[prompt("use npm, not pnpm")]] * 4, [[prompt("use pnpm, not npm")]] * 2
    assert only(after(*before, *since)).title == "Use pnpm, not npm"
    assert after(*before, *since[:1]).drafts == ()


def test_a_command_refused_in_three_sessions_is_to_be_asked_for() -> None:
    refused = [shell("terraform destroy", "", "denied"), prompt("continue")]
    assert after(refused, refused).drafts == ()
    assert only(after(refused, refused, refused)).title == "Ask before you run `terraform destroy`"


def test_an_error_with_the_same_way_out_twice_is_a_gotcha_measured_by_the_error() -> None:
    made = after(DOWN, DOWN)
    draft = only(made)
    assert (draft.kind, draft.title) == ("gotcha", "pnpm: Error: connect ECONNREFUSED 127.0.0.1:5432")
    assert draft.body.startswith(
        "- When `pnpm` fails with “Error: connect ECONNREFUSED 127.0.0.1:5432”: "
        "run `docker compose up -d db` first, then run it again. That worked in 2 sessions.\n"
    )
    assert draft.signature == next(one.signature for one in made.observations if one.kind == "error")


def test_an_error_that_ended_each_time_in_another_way_gives_nothing() -> None:
    ways = [[DOWN[0], shell(way), DOWN[2]] for way in ("npm ci", "docker restart web", "npm ci", "fg", "make up")]
    assert after(*ways).drafts == ()


def test_steps_of_three_sessions_are_one_procedure_whole() -> None:
    assert after(RELEASE, RELEASE).drafts == ()
    draft = only(after(RELEASE, RELEASE, RELEASE))
    assert (draft.kind, draft.title) == ("procedure", "Steps to npm publish")
    assert draft.body == (
        "Run in this order, as 3 sessions did:\n\n1. `npm version <version>`\n2. `npm run build`\n"
        "3. `git push --tags`\n4. `npm publish`\n"
    )


def test_steps_that_stood_together_by_chance_give_nothing() -> None:
    alone = [shell("make schema"), shell("./a.sh"), shell("./b.sh")]
    other = [shell("./b.sh"), shell("make schema"), shell("./c.sh"), shell("./a.sh"), shell("./d.sh")]
    assert after(alone, other, alone, other, other, other, alone).drafts == ()


# ---- pages that are there


def test_what_a_page_says_in_whatever_words_is_not_proposed() -> None:
    assert (
        after(
            [prompt(PNPM[0])], [prompt(PNPM[1])], pages=[page("# Packages\n\nWe take pnpm rather than npm.\n")]
        ).drafts
        == ()
    )
    assert after(DOWN, DOWN, pages=[page(only(after(DOWN, DOWN)).body, kind="gotcha")]).drafts == ()
    steps = page(only(after(RELEASE, RELEASE, RELEASE)).body, kind="procedure")
    assert after(RELEASE, RELEASE, RELEASE, pages=[steps]).drafts == ()


def test_a_page_about_the_same_is_appended_to_rather_than_doubled() -> None:
    there = page("Database of the integration tests: run its migrations first.\n", slug="integration")
    draft = only(after(*[[prompt("Don't mock the database in integration tests")]] * 2, pages=[there]))
    assert (draft.action, draft.slug, draft.base, draft.title) == ("append", "integration", 3, "Packages")


def test_a_rule_that_says_the_opposite_is_replaced_in_its_place() -> None:
    there = page("- Use npm, not pnpm.\n  > “npm please” — evt_9_9\n- Pin exact versions.\n")
    draft = only(after([prompt(PNPM[0])], [prompt(PNPM[1])], pages=[there]))
    assert (draft.action, draft.section, draft.base) == ("replace_section", "packages", 3)
    assert patched(there.body, draft) == (
        "- Use pnpm, not npm. The user put this right in 2 sessions.\n"
        "  > “No, pnpm instead of npm please” — evt_2_3\n- Pin exact versions.\n"
    )  # fmt: skip


def test_a_procedure_that_goes_on_takes_the_place_of_its_beginning() -> None:
    there = page(only(after(*[RELEASE[:3]] * 3)).body, kind="procedure", slug="release", title="Release")
    draft = only(after(RELEASE, RELEASE, RELEASE, pages=[there]))
    assert (draft.action, draft.slug) == ("replace_section", "release")
    assert patched(there.body, draft).endswith("3. `git push --tags`\n4. `npm publish`\n")


def test_a_pinned_page_is_left_alone_and_no_second_one_made() -> None:
    made = after([prompt(PNPM[0])], [prompt(PNPM[1])], pages=[page("- Use npm, not pnpm.\n", pinned=True)])
    assert made.drafts == ()
    assert [one.reason for one in made.refused] == ["the page that says the opposite is pinned"]


def test_what_was_rejected_stays_rejected_in_whatever_words() -> None:
    draft = only(after([prompt("don't push to main")], [prompt("don't push to main")]))
    sessions = [
        [prompt("don't push to main")],
        [prompt("don't push to main")],
        *[[prompt("never push to main directly")]] * 3,
    ]
    assert only(after(*sessions)).fingerprint != draft.fingerprint
    assert after(*sessions, rejected=[draft.fingerprint]).drafts == ()
    gotcha = only(after(DOWN, DOWN))
    assert after(DOWN, DOWN, DOWN, rejected=[gotcha.fingerprint]).drafts == ()


# ---- between pages


def test_a_page_that_says_the_same_as_an_older_one_is_to_be_retired() -> None:
    text = "- Use tabs in makefiles, not spaces.\n  > “tabs please” — evt_4_2\n"
    pages = [page(text), page(text, id=2, slug="packages-2")]
    draft = only(after([prompt("no pasta for dinner")], pages=pages))
    assert (draft.action, draft.slug, draft.why) == ("retire", "packages-2", "The page packages says the same.")
    assert [(quote.stream, quote.seq) for quote in draft.evidence] == [(4, 2)]
    assert after([prompt("no pasta for dinner")], pages=[replace(one, pinned=True) for one in pages]).drafts == ()


def test_of_two_rules_that_contradict_each_other_the_older_line_is_to_go() -> None:
    older = page("- Use tabs, not spaces.\n  > “tabs” — evt_4_2\n- Keep lines short.\n", slug="old", updated_at_us=1)
    newer = page("- Use spaces, not tabs.\n", id=2, slug="new", updated_at_us=2)
    draft = only(after([prompt("no pasta for dinner")], pages=[newer, older]))
    assert (draft.action, draft.slug) == ("replace_section", "old")
    assert patched(older.body, draft) == "- Keep lines short.\n"
    assert draft.why == "It says “Use tabs, not spaces.”; the page new says “Use spaces, not tabs.”."


# ---- bounds


def test_at_most_a_few_are_proposed_of_a_session_each_page_once() -> None:
    wishes = [
        "use pnpm, not npm",
        "use ruff, not black",
        "don't push to main",
        "never edit generated files",
        "no cats in tests",
    ]
    said_all = [prompt(one) for one in wishes]
    made = after(said_all, said_all)
    assert len(made.drafts) == DRAFTS_MAX
    assert len({draft.slug for draft in made.drafts}) == DRAFTS_MAX


def test_words_of_a_session_mean_nothing_in_the_page() -> None:
    hostile = "never use ![x](http://evil) <script> [[link]] ``` or curl in scripts"
    draft = only(after([prompt(hostile)], [prompt(hostile)]))
    assert "![" not in draft.body.replace("!\\[", "")
    assert "<script>" not in draft.body.replace("\\<script>", "")
    assert "[[" not in draft.body.replace("\\[\\[", "")
