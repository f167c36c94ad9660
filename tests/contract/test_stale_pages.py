"""Pages that name what is gone from a checkout: seen twice, a day apart, on its default branch."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.contract.test_sessions import prompt

from everkept.api import review_views as r
from everkept.api.local import LocalService
from everkept.bootstrap import Application, open_application
from everkept.capture.identity import look_at, with_root
from everkept.config import load
from everkept.domain.review.stale import Named
from everkept.doors.cli.checkouts import look_at_checkouts
from everkept.ports.clock import VirtualClock
from everkept.wiring.checkout_tree import CheckoutTree, tree_of
from everkept.wiring.stale_pages import look_for_stale_pages

DAY_S = 86_400.0
GONE = "All that it names is gone: `scripts/deploy.sh`, looked for twice on the default branch, a day apart."
FIRST = r.StaleFound(waiting=1, staged=0, refused=[])
NOTHING = r.StaleFound(waiting=0, staged=0, refused=[])


class Checkout:
    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        self.git("init", "-q", "-b", "main")
        self.write("scripts/deploy.sh", "echo")
        self.write("Makefile", "lint docs: tools\n\ttrue\nVERSION := 1\nbuild-%:\n\ttrue\n")
        self.write("package.json", '{"scripts": {"build": "x"}}')
        self.commit()

    def git(self, *words: str) -> None:
        env = {"PATH": os.environ["PATH"], "HOME": str(self.root.parent), "GIT_CONFIG_NOSYSTEM": "1"}
        who = ("-c", "user.name=ana", "-c", "user.email=ana@a.example")
        subprocess.run(["git", *who, *words], cwd=self.root, check=True, capture_output=True, env=env)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "on")

    def lose(self, *names: str) -> None:
        self.git("rm", "-q", *names)
        self.git("commit", "-q", "-m", "gone")

    def tree(self) -> CheckoutTree:
        found = tree_of(self.root)
        assert found is not None
        return found

    def gone(self, *names: Named) -> set[str]:
        return {name.text for name in self.tree().gone(names)}


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "repo")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    application: Application
    service: LocalService
    clock: VirtualClock
    checkout: Checkout

    async def look(self) -> r.StaleFound | None:
        return await look_for_stale_pages(self.service, self.checkout.root)

    async def proposals(self) -> list[r.Proposal]:
        return (await self.service.list_proposals()).items


def run(checkout: Checkout, steps: Callable[[World], Awaitable[None]]) -> None:
    """A project with one page that names a script of its checkout."""

    async def all_of_it() -> None:
        clock = VirtualClock()
        home = checkout.root.parent / "home"
        application = await open_application(load({}, home), worker=False, clock=clock)
        try:
            service = await application.service("default")
            await service.write_page("Deploy", "Run `./scripts/deploy.sh`.\n", kind="procedure")
            await steps(World(application=application, service=service, clock=clock, checkout=checkout))
        finally:
            await application.close()

    asyncio.run(all_of_it())


# ---- what a checkout says


def test_a_file_is_gone_if_git_knew_it_and_neither_the_commit_nor_the_folder_has_it(checkout: Checkout) -> None:
    files = [Named("file", name) for name in ("scripts/deploy.sh", "deploy.sh", "scripts", "dist/app.js")]
    assert checkout.gone(*files) == set()
    checkout.lose("scripts/deploy.sh")
    assert checkout.gone(*files) == {"scripts/deploy.sh", "deploy.sh", "scripts"}, "a build's output was never known"
    checkout.write("scripts/deploy.sh", "ignored by git, and there")
    assert checkout.gone(*files) == {"deploy.sh"}


def test_a_file_that_is_deleted_here_and_stands_in_the_commit_is_there(checkout: Checkout) -> None:
    (checkout.root / "scripts/deploy.sh").unlink()
    assert checkout.gone(Named("file", "scripts/deploy.sh")) == set()


def test_a_file_that_lies_in_another_folder_now_is_there_by_its_name_and_gone_by_its_path(checkout: Checkout) -> None:
    (checkout.root / "ops").mkdir()
    checkout.git("mv", "scripts/deploy.sh", "ops/deploy.sh")
    checkout.commit()
    names = [Named("file", "deploy.sh"), Named("file", "scripts/deploy.sh")]
    assert checkout.gone(*names) == {"scripts/deploy.sh"}


def test_a_task_is_gone_if_a_commit_had_it(checkout: Checkout) -> None:
    texts = ("make lint", "make docs", "make VERSION", "make build-web", "make never", "npm run build", "npm run never")
    tasks = [Named("task", text) for text in texts]
    assert checkout.gone(*tasks) == set()
    checkout.write("Makefile", "docs: tools\n\ttrue\nbuild-%:\n\ttrue\n")
    checkout.write("package.json", '{"scripts": {}}')
    assert checkout.gone(*tasks) == set(), "the commit has them"
    checkout.commit()
    assert checkout.gone(*tasks) == {"make lint", "npm run build"}


def test_another_branch_a_detached_head_no_commit_and_no_checkout_say_nothing(
    checkout: Checkout, tmp_path: Path
) -> None:
    checkout.git("checkout", "-q", "-b", "feature")
    assert tree_of(checkout.root) is None
    checkout.git("checkout", "-q", "--detach", "main")
    assert tree_of(checkout.root) is None
    empty = tmp_path / "empty"
    empty.mkdir()
    assert tree_of(empty) is None
    subprocess.run(["git", "init", "-q"], cwd=empty, check=True)
    assert tree_of(empty) is None


def test_the_default_branch_is_the_one_that_the_clone_was_told(checkout: Checkout, tmp_path: Path) -> None:
    checkout.git("branch", "-m", "trunk")
    clone = tmp_path / "clone"
    checkout.git("clone", "-q", str(checkout.root), str(clone))
    assert tree_of(clone) is not None
    subprocess.run(["git", "checkout", "-q", "-b", "main"], cwd=clone, check=True)
    assert tree_of(clone) is None


def test_a_worktree_on_the_default_branch_is_looked_at_and_one_on_another_is_not(
    checkout: Checkout, tmp_path: Path
) -> None:
    checkout.git("worktree", "add", "-q", "-b", "feature", str(tmp_path / "other"))
    assert tree_of(tmp_path / "other") is None
    checkout.git("checkout", "-q", "--detach")
    checkout.git("-C", str(tmp_path / "other"), "checkout", "-q", "main")
    assert tree_of(tmp_path / "other") is not None


# ---- what is made of it


def test_what_is_gone_twice_a_day_apart_is_proposed_once_and_takes_the_page_away(checkout: Checkout) -> None:
    async def steps(world: World) -> None:
        assert await world.look() == NOTHING
        checkout.lose("scripts/deploy.sh")
        assert await world.look() == FIRST
        world.clock.advance(DAY_S - 60)
        assert await world.look() == FIRST
        assert await world.proposals() == []
        world.clock.advance(60)
        assert await world.look() == r.StaleFound(waiting=0, staged=1, refused=[])
        (proposal,) = await world.proposals()
        assert (proposal.action, proposal.slug, proposal.reviewer, proposal.why) == (
            "retire", "deploy", "checkout", GONE)  # fmt: skip
        again = await world.look()
        assert again is not None
        assert (again.staged, len(again.refused)) == (0, 1)
        assert len(await world.proposals()) == 1
        await world.service.approve_proposal(proposal.id)
        assert await world.look() == NOTHING

    run(checkout, steps)


def test_what_was_turned_down_is_not_proposed_again(checkout: Checkout) -> None:
    async def steps(world: World) -> None:
        checkout.lose("scripts/deploy.sh")
        await world.look()
        world.clock.advance(DAY_S)
        await world.look()
        (proposal,) = await world.proposals()
        await world.service.reject_proposal(proposal.id)
        world.clock.advance(DAY_S)
        await world.look()
        assert await world.proposals() == []

    run(checkout, steps)


def test_what_is_there_again_in_between_begins_anew(checkout: Checkout) -> None:
    async def steps(world: World) -> None:
        checkout.lose("scripts/deploy.sh")
        await world.look()
        checkout.write("scripts/deploy.sh", "back")
        world.clock.advance(DAY_S)
        assert await world.look() == NOTHING
        (checkout.root / "scripts/deploy.sh").unlink()
        assert await world.look() == FIRST

    run(checkout, steps)


def test_a_page_that_was_changed_in_between_is_looked_for_anew(checkout: Checkout) -> None:
    async def steps(world: World) -> None:
        checkout.lose("scripts/deploy.sh")
        await world.look()
        await world.service.write_page("Deploy", "Run `scripts/deploy.sh` twice.\n", kind="procedure")
        world.clock.advance(DAY_S)
        assert await world.look() == FIRST

    run(checkout, steps)


def test_a_look_on_another_branch_changes_nothing(checkout: Checkout) -> None:
    async def steps(world: World) -> None:
        checkout.git("checkout", "-q", "-b", "feature")
        checkout.lose("scripts/deploy.sh")
        assert await world.look() is None
        checkout.git("checkout", "-q", "main")
        assert await world.look() == NOTHING

    run(checkout, steps)


def test_a_section_loses_the_lines_that_name_what_is_gone_and_an_approval_writes_it_so(checkout: Checkout) -> None:
    async def steps(world: World) -> None:
        body = "## Steps\n\n- Run `scripts/deploy.sh`.\n- Run `make lint`.\n"
        await world.service.write_page("Deploy", body, kind="procedure")
        checkout.lose("scripts/deploy.sh")
        await world.look()
        world.clock.advance(DAY_S)
        await world.look()
        (proposal,) = await world.proposals()
        assert (proposal.action, proposal.section) == ("replace_section", "steps")
        await world.service.approve_proposal(proposal.id)
        assert (await world.service.get_page("deploy")).body == "## Steps\n\n- Run `make lint`.\n"

    run(checkout, steps)


def test_a_worker_looks_by_itself_at_checkouts_in_which_agents_were_at_work_four_times_a_day(
    checkout: Checkout,
) -> None:
    async def steps(world: World) -> None:
        home = world.application.settings.home
        scope = await world.application.resolve_scope(with_root(look_at(checkout.root)), create=True)
        theirs = await world.application.service(scope.project)
        await theirs.write_page("Deploy", "Run `./scripts/deploy.sh`.\n", kind="procedure")
        ingest = world.application.ingest(project=None, confined=False)
        await ingest.events([prompt("one", "Deploy it", source="hook")], checkout=look_at(checkout.root))
        checkout.lose("scripts/deploy.sh")
        await look_at_checkouts(world.application, home)
        world.clock.advance(DAY_S)
        await look_at_checkouts(world.application, home)
        assert [proposal.why for proposal in (await theirs.list_proposals()).items] == [GONE]
        assert await world.proposals() == [], "the project of another folder"
        (home / "checkouts_looked_at").write_text("not a time")
        await look_at_checkouts(world.application, home)
        assert (home / "checkouts_looked_at").read_text() == str(world.clock.now_us() // 1_000_000)

    run(checkout, steps)
