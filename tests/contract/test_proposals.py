"""Proposals: staged each by itself, decided once, undone byte for byte (E03, I06-I08)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.contract.test_distil import Agents

from everkept.domain.erase import EventTarget, StreamTarget
from everkept.domain.ids import ProjectId
from everkept.domain.pages import PageText, sections_of, without_lines
from everkept.domain.review.values import BODY_CHARS_MAX, PAGE_CHARS_MAX, Draft, Quote, Refusal
from everkept.domain.scope import Scope
from everkept.errors import Conflict, NotFound
from everkept.store.decisions import approve_proposal, reject_proposal, roll_back_proposal
from everkept.store.erase import erase
from everkept.store.pages import NewPage, PageRow, delete_page, find_page, get_page, page_history, pin_page, write_page
from everkept.store.proposals import ProposalRow, evidence_of, get_proposal, list_proposals, stage_drafts
from everkept.store.review_input import known_pages
from everkept.store.search import find_postings, load_hits

DAY_S = 86_400.0
BODY = "Use uv.\n\n## Why\n\nIt locks.\n"


class Reviewed(Agents):
    """A project with one digested session, and what a reviewer makes of it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.work()
        self.source = self.session().stream
        self._signatures = itertools.count(1)

    def draft(self, slug: str = "use-uv", **more: Any) -> Draft:
        made: dict[str, Any] = {
            "action": "create", "kind": "rule", "slug": slug, "title": slug, "body": BODY, "why": "corrected twice",
            "confidence": 0.9, "signature": f"sig-{next(self._signatures)}",
            "evidence": (Quote(stream=self.source, seq=1, text="Fix the failing login test"),),
        }  # fmt: skip
        return Draft(**{**made, **more})

    def patch(self, action: str, slug: str = "use-uv", **more: Any) -> Draft:
        page = self.page(slug)
        made = {"action": action, "kind": page.kind, "title": page.title, "base": page.version, "body": "More."}
        return self.draft(slug, **{**made, **more})

    def stage(self, *drafts: Draft) -> tuple[int, tuple[Refusal, ...]]:
        return self.write(lambda conn: stage_drafts(
            conn, project=self.project.id, review=None, stream=self.source, drafts=drafts, reviewer="rules",
            settings=self.settings,
        ))  # fmt: skip

    def staged(self, draft: Draft) -> int:
        """Stage one that is taken; its number."""
        assert self.stage(draft) == (1, ())
        return self.all()[0].id

    def refusal(self, draft: Draft) -> str:
        n, refused = self.stage(draft)
        assert (n, len(refused)) == (0, 1)
        return refused[0].reason

    def all(self, **chosen: Any) -> list[ProposalRow]:
        return self.read(lambda conn: list_proposals(conn, self.project.id, **chosen))

    def proposal(self, number: int) -> ProposalRow:
        return self.read(get_proposal, self.project.id, number)

    def approve(self, number: int, **more: Any) -> ProposalRow:
        return self.write(lambda conn: approve_proposal(conn, self.project.id, number, by="ana", **more))

    def reject(self, number: int, reason: str | None = None) -> ProposalRow:
        return self.write(lambda conn: reject_proposal(conn, self.project.id, number, by="ana", reason=reason))

    def roll_back(self, number: int) -> ProposalRow:
        return self.write(lambda conn: roll_back_proposal(conn, self.project.id, number, by="ana", reason=None))

    def page(self, slug: str = "use-uv") -> PageRow:
        return self.read(get_page, self.project.id, slug)

    def versions(self, slug: str = "use-uv") -> int:
        return len(self.read(page_history, self.page(slug).id))

    def there(self, slug: str = "use-uv", body: str = BODY, kind: str = "rule") -> PageRow:
        new = NewPage(project=self.project.id, kind=kind, slug=slug, text=PageText(title=slug, body=body),
                      author="hand")  # fmt: skip
        written = self.write(write_page, new)
        assert written is not None
        return written

    def pin(self, slug: str = "use-uv", *, pinned: bool = True) -> None:
        self.write(lambda conn: pin_page(conn, self.project.id, slug, pinned=pinned))

    def changes(self) -> list[str]:
        return [r[0] for r in self.rows("select kind from changes where kind like 'proposal.%' order by seq")]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Reviewed]:
    made = Reviewed(tmp_path)
    yield made
    made.close()
    made.store.close()


# ---- staging


def test_a_bad_draft_takes_no_sibling_with_it(world: Reviewed):
    world.there("there")
    staged, refused = world.stage(
        world.draft("one"), world.draft("there"), world.draft("Not A Slug"), world.draft("empty", body=" "),
        world.draft("two", kind="gotcha"), world.patch("append", "there", base=None),
    )  # fmt: skip
    assert staged == 2
    assert {r.what: r.reason for r in refused} == {
        "create there": "there is a page of this name", "create Not A Slug": "its page has no name",
        "create empty": "it says nothing", "append there": "the reviewer had not seen the page",
    }  # fmt: skip
    assert [p.slug for p in world.all(state="staged")] == ["two", "one"]
    assert world.changes() == ["proposal.staged"] * 2
    assert [Quote(stream=world.source, seq=1, text="Fix the failing login test")] == list(
        world.read(evidence_of, world.all()[0].id)
    )


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"body": "x" * (BODY_CHARS_MAX + 1)}, "too large"),
        ({"title": " "}, "a title has 1 to 200 characters"),
        ({"confidence": 1.5}, "not between 0 and 1"),
        ({"evidence": ()}, "nothing bears it out"),
        ({"evidence": (Quote(stream=1, seq=99, text="never said"),)}, "is not there any more"),
        ({"action": "add_section"}, "names no section"),
        ({"action": "append"}, "there is no such page"),
    ],
)
def test_what_cannot_be_approved_is_not_staged(world: Reviewed, more: dict[str, Any], reason: str):
    assert reason in world.refusal(world.draft(**more))


def test_a_draft_for_a_page_of_a_session_is_refused(world: Reviewed):
    slug = world.value("select slug from pages where kind = 'session'")
    assert "a session page, which no proposal changes" in world.refusal(world.patch("append", slug, kind="rule"))


def test_a_page_longer_than_a_reviewer_reads_is_neither_changed_nor_taken_away(world: Reviewed):
    world.there()
    text = PageText(title="use-uv", body="x " * (PAGE_CHARS_MAX // 2))
    number = world.staged(world.patch("append"))
    world.write(write_page, NewPage(project=world.project.id, kind="rule", slug="use-uv", text=text, author="ana"))
    assert "pages of at most 20,000" in world.refusal(world.patch("append"))
    assert world.approve(number, rebase=True).state == "conflict"
    assert world.stage(world.patch("retire", body="")) == (1, ()), "it is not too long by itself"
    longer = PageText(title="use-uv", body=f"{text.body}x")
    world.write(write_page, NewPage(project=world.project.id, kind="rule", slug="use-uv", text=longer, author="ana"))
    assert "pages of at most 20,000" in world.refusal(world.patch("retire", body=""))


def test_a_pinned_page_is_not_proposed_for(world: Reviewed):
    world.there()
    world.pin()
    assert world.refusal(world.patch("append")) == "the page is pinned"
    world.pin(pinned=False)
    assert world.stage(world.patch("append")) == (1, ())


def test_the_same_is_proposed_once_however_it_is_worded(world: Reviewed):
    draft = world.draft()
    number = world.staged(draft)
    again = replace(draft, body="Other words.", title="Another title", why="another reason")
    assert f"prp_{number} proposes the same" in world.refusal(again)
    assert (world.proposal(number).draft.body, world.proposal(number).why) == (draft.body, "another reason")
    world.reject(number, "we use pip")
    assert f"the same was rejected before (prp_{number})" == world.refusal(again)
    renamed = replace(again, slug="another-title")
    assert f"the same was rejected before (prp_{number})" == world.refusal(renamed), "a model calls it otherwise"
    assert world.stage(replace(renamed, kind="gotcha")) == (1, ())


def test_what_was_rolled_back_is_not_proposed_again(world: Reviewed):
    draft = world.draft()
    world.approve(world.staged(draft))
    world.roll_back(1)
    world.do("delete from page_versions")
    world.do("delete from pages where slug = 'use-uv'")
    assert world.refusal(draft) == "the same was rolled back before (prp_1)"


def test_a_newer_proposal_for_the_same_target_supersedes_the_one_that_waits(world: Reviewed):
    first = world.staged(world.draft())
    second = world.staged(world.draft(body="Use uv 0.5.\n"))
    assert ("superseded", f"prp_{second} took its place") == (
        world.proposal(first).state, world.proposal(first).state_reason)  # fmt: skip
    with pytest.raises(Conflict, match="is superseded already"):
        world.approve(first)
    world.approve(second)
    appended = [world.staged(world.patch("append", body=words)) for words in ("a", "b")]
    assert [world.proposal(n).state for n in appended] == ["staged", "staged"]


def test_a_page_that_a_person_deleted_is_not_proposed_again(world: Reviewed):
    world.there()
    world.write(delete_page, world.project.id, "use-uv")
    assert world.refusal(world.draft()) == "a person deleted this page"


def test_a_project_that_wants_no_proposals_of_a_kind_gets_none(world: Reviewed):
    world.set_project(proposals__rule="off")
    assert world.refusal(world.draft()) == "proposals for rule pages are off in this project"
    assert world.stage(world.draft(kind="procedure")) == (1, ())


def test_a_proposal_that_nobody_decides_expires(world: Reviewed):
    number = world.staged(world.draft())
    world.clock.advance(29 * DAY_S)
    world.maintain()
    assert world.proposal(number).state == "staged"
    world.clock.advance(2 * DAY_S)
    world.maintain()
    row = world.proposal(number)
    assert (row.state, row.state_reason) == ("expired", "nobody decided in time")


# ---- approving


def test_an_approval_writes_the_page_with_its_author_and_reason(world: Reviewed):
    number = world.staged(world.draft())
    row = world.approve(number)
    page = world.page()
    assert ("approved", "ana", page.id, 1, None) == (row.state, row.decided_by, row.page, row.version, row.previous)
    assert (page.body, page.kind, page.author) == (BODY, "rule", "review")
    assert page.reason == "prp_1 approved by ana: corrected twice"
    assert world.changes() == ["proposal.staged", "proposal.approved"]
    assert row == world.approve(number), "approved twice, it is approved once"
    assert world.versions() == 1


def test_each_patch_changes_its_place_alone(world: Reviewed):
    world.there()
    why = next(s.text_hash for s in sections_of("use-uv", BODY) if s.anchor == "why")
    world.approve(world.staged(world.patch("replace_section", section="why", section_hash=why, body="It is fast.")))
    assert world.page().body == "Use uv.\n\n## Why\n\nIt is fast.\n"
    world.approve(world.staged(world.patch("add_section", section="How", body="`uv sync`")))
    world.approve(world.staged(world.patch("append", body="Always.")))
    assert world.page().body == "Use uv.\n\n## Why\n\nIt is fast.\n\n## How\n\n`uv sync`\n\nAlways.\n"


def test_siblings_on_one_page_are_approved_one_after_the_other(world: Reviewed):
    world.there()
    one, two = (world.staged(world.patch("append", body=words)) for words in ("One.", "Two."))
    assert world.approve(one).state == "approved"
    assert ("approved", f"{BODY}\nOne.\n\nTwo.\n") == (world.approve(two).state, world.page().body)


def test_a_page_that_moved_on_is_a_conflict_until_a_person_has_looked(world: Reviewed):
    world.there()
    number = world.staged(world.patch("append"))
    world.there(body="By hand.\n")
    row = world.approve(number)
    assert row.state == "conflict"
    assert "it is at version 2, and this was proposed on 1" in str(row.state_reason)
    assert world.page().body == "By hand.\n"
    assert world.approve(number).state == "conflict", "asking again does not look"
    assert (world.approve(number, rebase=True).state, world.page().body) == ("approved", "By hand.\n\nMore.\n")


def test_a_section_that_moved_on_is_a_conflict_even_for_who_has_looked(world: Reviewed):
    world.there()
    why = next(s.text_hash for s in sections_of("use-uv", BODY) if s.anchor == "why")
    number = world.staged(world.patch("replace_section", section="why", section_hash=why))
    world.there(body="Use uv.\n\n## Why\n\nIt locks, and more.\n")
    row = world.approve(number, rebase=True)
    assert (row.state, row.state_reason) == ("conflict", "section 'why' was changed since the proposal was made")


def test_a_page_that_was_pinned_meanwhile_stays_as_it_is(world: Reviewed):
    world.there()
    number = world.staged(world.patch("append"))
    world.pin()
    assert (world.approve(number, rebase=True).state, world.page().body) == ("conflict", BODY)
    world.pin(pinned=False)
    assert world.approve(number).state == "approved"


def test_a_page_that_was_deleted_meanwhile_stays_deleted(world: Reviewed):
    world.there()
    number = world.staged(world.patch("append"))
    world.write(delete_page, world.project.id, "use-uv")
    assert world.approve(number, rebase=True).state == "conflict"
    assert world.read(find_page, world.project.id, "use-uv") is None


def test_only_what_awaits_a_decision_is_decided(world: Reviewed):
    number = world.staged(world.draft())
    world.reject(number, "no")
    assert world.reject(number, "another reason").state_reason == "no", "rejected twice, it is rejected once"
    with pytest.raises(Conflict, match="is rejected by ana already; nothing was changed"):
        world.approve(number)
    with pytest.raises(Conflict, match="is rejected, not approved"):
        world.roll_back(number)
    with pytest.raises(NotFound, match="no proposal prp_99"):
        world.approve(99)


def test_what_is_approved_by_itself_is_a_job_of_its_own_made_with_the_staging(world: Reviewed):
    world.set_project(proposals__rule="auto")
    world.stage(world.draft("one"), world.draft("two"), world.draft("three", kind="procedure"))
    assert world.value("select count(*) from jobs where kind = 'apply_proposal' and state = 'waiting'") == 2
    world.live(10)
    assert {p.slug: p.state for p in world.all()} == {"one": "approved", "two": "approved", "three": "staged"}
    assert world.page("one").reason == "prp_1 approved by auto: corrected twice"


def test_what_is_switched_back_to_ask_waits_for_a_person(world: Reviewed):
    world.set_project(proposals__rule="auto")
    number = world.staged(world.draft())
    world.set_project(proposals__rule="ask")
    world.live(10)
    assert world.proposal(number).state == "staged"


# ---- erasing


def test_what_rests_on_an_erased_session_goes_and_may_be_proposed_again(world: Reviewed):
    draft = world.draft()
    world.approve(world.staged(draft))
    world.stage(world.draft("waits"))
    world.erase(StreamTarget(stream=world.source))
    assert world.read(find_page, world.project.id, "use-uv") is None
    assert world.all() == []
    world.work("s2")
    world.source = world.session("s2").stream
    evidence = (Quote(stream=world.source, seq=1, text="Fix the failing login test"),)
    assert world.stage(replace(draft, evidence=evidence)) == (1, ())


def test_g10_an_erase_takes_the_page_that_an_approval_made_of_several_sessions_with_any_of_them(world: Reviewed):
    world.work("s2")
    other = world.session("s2").stream
    evidence = (*world.draft().evidence, Quote(stream=other, seq=1, text="Fix the failing login test"))
    world.approve(world.staged(replace(world.draft(), evidence=evidence)))
    world.erase(StreamTarget(stream=other))
    assert world.read(find_page, world.project.id, "use-uv") is None
    assert world.all() == []


@pytest.mark.parametrize("written_after", [False, True])
def test_g10_an_erase_takes_what_an_approval_added_out_of_every_version(world: Reviewed, *, written_after: bool):
    world.there(body="# Ours\n\nKeep this.\n")
    base = world.read(find_page, world.project.id, "use-uv")
    assert base is not None
    draft = replace(world.draft(), action="append", base=base.version, body="- Say quokka.\n  > “quokka” — evt_1_1\n")
    world.approve(world.staged(draft))
    if written_after:
        now = world.read(find_page, world.project.id, "use-uv")
        assert now is not None
        text = PageText(title=now.title, body=now.body + "\nAnd more.\n")
        world.write(write_page, NewPage(project=world.project.id, kind="rule", slug="use-uv", text=text, author="hand"))
    world.erase(StreamTarget(stream=world.source))
    page = world.read(find_page, world.project.id, "use-uv")
    assert page is not None
    assert "Keep this." in page.body
    assert ("And more." in page.body) is written_after
    assert world.rows("select count(*) from page_versions where body like '%quokka%'") == [(0,)]
    assert world.rows("select count(*) from page_sections where body like '%quokka%'") == [(0,)]


def test_g10_what_stays_of_a_page_stays_to_the_byte():
    body = "# Ours\r\n\r\nKeep\x0cthis\u2028one.\r\n- Say quokka.\r\n"
    assert without_lines(body, "- Say quokka.\n") == "# Ours\r\n\r\nKeep\x0cthis\u2028one.\r\n"
    assert without_lines(body, "- Say numbat.\n") == body


def test_proposals_are_hidden_as_soon_as_their_session_is_to_be_erased(world: Reviewed):
    world.stage(world.draft())
    world.write(erase, world.project.id, StreamTarget(stream=world.source))
    assert world.all() == []


def test_g10_a_proposal_about_a_page_goes_with_the_page_whatever_it_rests_on_itself(world: Reviewed):
    world.work("s2")
    other = world.session("s2").stream
    text = PageText(title="Quokkas", body="Of the first session.")
    new = NewPage(project=world.project.id, kind="rule", slug="use-uv", text=text, author="distiller",
                  stream=world.source)  # fmt: skip
    world.write(write_page, new)
    rests = (Quote(stream=other, seq=1, text="Fix the failing login test"),)
    _, rejected, approved = (world.staged(world.patch("append", evidence=rests, body=f"Words {n}.")) for n in range(3))
    world.reject(rejected)
    world.approve(approved)
    assert {row.title for row in world.all()} == {"Quokkas"}
    world.erase(StreamTarget(stream=world.source))
    assert world.rows("select id, title, slug, body, why from proposals") == [(rejected, "", "", "", "")]
    assert world.rows("select distinct proposal_id from proposal_quotes") == [(rejected,)]


def found(world: Reviewed, word: str) -> list[str]:
    """Kinds of the passages that a search may show."""

    def look(conn: Any) -> list[str]:
        scope = Scope(project=ProjectId(world.project.id))
        postings = find_postings(conn, scope, word, ("page",))
        ids = [int(i) for _, some in postings for i in some.split(",")]
        return [hit.kind for hit in load_hits(conn, scope, ids)]

    return world.read(look)


@pytest.mark.parametrize("added", [False, True])
def test_what_an_approval_wrote_is_hidden_by_the_first_commit_of_an_erase(world: Reviewed, *, added: bool):
    if added:
        world.there(body="Keep this.\n")
    world.approve(world.staged(world.patch("append", body="Say quokka.") if added else world.draft(body="Say quokka.")))
    world.there("another", body="Numbats stay.")
    assert (found(world, "quokka"), found(world, "numbat")) == (["page"], ["page"])
    world.write(erase, world.project.id, EventTarget(stream=world.source, seq=1))
    assert (found(world, "quokka"), found(world, "numbat")) == ([], ["page"])
    assert world.read(find_page, world.project.id, "use-uv") is None
    assert [page.slug for page in world.read(known_pages, world.project.id)] == ["another"]
    text = PageText(title="use-uv", body="By hand.")
    with pytest.raises(Conflict, match="is being erased, or a part of it"):
        world.write(write_page, NewPage(project=world.project.id, kind="rule", slug="use-uv", text=text, author="hand"))
    world.live(60)
    page = world.read(find_page, world.project.id, "use-uv")
    assert (None if page is None else page.body) == ("Keep this.\n\n" if added else None)


# ---- rolling back


def test_a_rollback_of_a_new_page_takes_it_out(world: Reviewed):
    number = world.staged(world.draft())
    world.approve(number)
    row = world.roll_back(number)
    assert (row.state, row.undone_by) == ("rolled_back", None)
    assert world.read(find_page, world.project.id, "use-uv") is None
    assert row == world.roll_back(number), "rolled back twice, it is rolled back once"


def test_a_rollback_restores_the_page_to_the_byte(world: Reviewed):
    world.there(body="Open end")
    number = world.staged(world.patch("append"))
    world.approve(number)
    row = world.roll_back(number)
    assert (world.page().body, row.undone_by) == ("Open end", 3)
    assert world.page().reason == "prp_1 rolled back by ana"


def test_a_rollback_from_under_later_versions_leaves_these(world: Reviewed):
    world.there()
    number = world.staged(world.patch("append"))
    world.approve(number)
    world.there(body=f"On top.\n{world.page().body}")
    world.roll_back(number)
    assert f"On top.\n{BODY}" == world.page().body


def test_a_rollback_that_cannot_be_is_a_conflict_and_changes_nothing(world: Reviewed):
    world.there()
    number = world.staged(world.patch("append"))
    world.approve(number)
    world.there(body="All new.\n")
    with pytest.raises(Conflict, match="changed since"):
        world.roll_back(number)
    assert (world.proposal(number).state, world.page().body) == ("approved", "All new.\n")
    made = world.staged(world.draft("made"))
    world.approve(made)
    world.there("made", body="By hand.\n")
    with pytest.raises(Conflict, match="written to since"):
        world.roll_back(made)


def test_a_retired_page_is_brought_back_by_its_rollback(world: Reviewed):
    world.there()
    number = world.staged(world.patch("retire", body=""))
    assert ((row := world.approve(number)).state, row.version, row.previous) == ("approved", None, 1)
    assert world.read(find_page, world.project.id, "use-uv") is None
    world.roll_back(number)
    assert (world.page().body, world.page().version) == (BODY, 2)
