"""Pages of which all that they name is gone, seen twice, a day apart, on the default branch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from everkept.domain.review.stale import APART_US, Look, Named, look_at, names_in, stale_drafts
from everkept.domain.review.values import KnownPage

BODY = (
    "- Run `./scripts/old_deploy.sh staging` and then `make announce`.\n"
    "  > “the script deploys” — evt_3_4\n"
    "- Its settings are in `deploy/settings.toml`; never write them to `secrets.env`.\n"
)
PAGE = KnownPage(
    id=5,
    kind="procedure",
    slug="deploy",
    title="Deploy",
    version=2,
    body=BODY,
    pinned=False,
    author="api",
    updated_at_us=1,
)


def look(
    page: KnownPage = PAGE, at_us: int = 0, branch: str | None = "main", there: frozenset[str] = frozenset()
) -> Look:
    found = look_at([page], lambda name: name.text in there, at_us=at_us, branch=branch, default="main")
    assert found is not None
    return found


def test_files_and_tasks_are_named_by_code_spans_and_not_where_they_are_forbidden() -> None:
    assert names_in(PAGE) == (Named("file", "scripts/old_deploy.sh"), Named("task", "make announce"))


@pytest.mark.parametrize(
    ("span", "names"),
    [
        ("src/a/b.py", [Named("file", "src/a/b.py")]),
        ("pyproject.toml", [Named("file", "pyproject.toml")]),
        ("npm run build -- --prod", [Named("task", "npm run build")]),
        ("python -X dev tools/gen.py && make lint", [Named("task", "make lint")]),
        ("python tools/gen.py", [Named("file", "tools/gen.py")]),
        ("git push", []), ("v1.2.3", []), ("<path>/x.py", []), ("https://a.example/b.html", []), ("/etc/hosts", []),
        ("src/*.py", []), ("--flag", []), ("foo()", []), ("python -m pytest", []), ("npm version <version>", []),
    ],
)  # fmt: skip
def test_what_is_no_file_of_the_checkout_is_not_named(span: str, names: list[Named]) -> None:
    assert list(names_in(replace(PAGE, body=f"- See `{span}`.\n"))) == names


def test_what_is_gone_twice_a_day_apart_is_proposed_to_be_retired() -> None:
    (draft,) = stale_drafts(look(), look(at_us=APART_US), [PAGE], frozenset())
    assert (draft.action, draft.slug, draft.base) == ("retire", "deploy", 2)
    assert draft.why == (
        "All that it names is gone from the default branch: `scripts/old_deploy.sh`, `make announce`, "
        "looked for twice, a day apart."
    )
    assert [(quote.stream, quote.seq) for quote in draft.evidence] == [(3, 4)]
    assert stale_drafts(look(), look(at_us=APART_US), [PAGE], frozenset({draft.fingerprint})) == ()


def test_less_than_a_day_one_look_or_another_version_is_not_enough() -> None:
    assert stale_drafts(look(), look(at_us=APART_US - 1), [PAGE], frozenset()) == ()
    there = look(there=frozenset({"make announce"}))
    assert stale_drafts(there, look(at_us=APART_US), [PAGE], frozenset()) == ()
    changed = replace(PAGE, version=3)
    assert stale_drafts(look(), look(changed, at_us=APART_US), [changed], frozenset()) == ()


def test_another_branch_says_nothing() -> None:
    for branch in ("feature", None):
        assert look_at([PAGE], lambda _: False, at_us=0, branch=branch, default="main") is None


def test_a_page_of_which_something_is_left_or_cannot_be_told_is_pinned_or_names_nothing_stays() -> None:
    assert look(there=frozenset({"make announce"})).gone == ()
    cannot_tell = look_at(
        [PAGE], lambda name: None if name.kind == "task" else False, at_us=0, branch="main", default="main"
    )
    assert cannot_tell is not None
    assert cannot_tell.gone == ()
    assert look(replace(PAGE, pinned=True)).gone == ()
    assert look(replace(PAGE, body="- Be kind.\n")).gone == ()
    assert look(replace(PAGE, kind="decision")).gone == ()
