"""Pages of which all that they name is gone, seen twice, a day apart, on the default branch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from everkept.domain.pages import sections_of
from everkept.domain.review.stale import Named, names_in, stale_draft
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


SCRIPT, ANNOUNCE = Named("file", "scripts/old_deploy.sh"), Named("task", "make announce")


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


def test_a_page_of_which_all_is_gone_that_it_names_is_proposed_to_be_retired() -> None:
    draft = stale_draft(PAGE, {SCRIPT, ANNOUNCE})
    assert draft is not None
    assert (draft.action, draft.slug, draft.base) == ("retire", "deploy", 2)
    assert draft.why == (
        "All that it names is gone: `scripts/old_deploy.sh`, `make announce`, looked for twice on the default branch, "
        "a day apart."
    )
    assert [(quote.stream, quote.seq) for quote in draft.evidence] == [(3, 4)]


def test_lines_of_which_all_is_gone_are_proposed_to_go_with_their_quotes_and_the_rest_stays() -> None:
    body = (
        "# Deploy\n\nFirst `make lint`.\n\n## Steps\n\n- Run `./scripts/old_deploy.sh`.\n"
        "  > “the script deploys” — evt_3_4\n- Then tell everybody.\n"
    )
    page = replace(PAGE, body=body)
    draft = stale_draft(page, {SCRIPT})
    assert draft is not None
    assert (draft.action, draft.section, draft.body) == ("replace_section", "steps", "- Then tell everybody.")
    assert draft.section_hash == next(s.text_hash for s in sections_of("Deploy", body) if s.anchor == "steps")
    assert draft.why.startswith("What lines of it name is gone: `scripts/old_deploy.sh`, looked for twice")


def test_what_is_gone_otherwise_makes_it_another_proposal() -> None:
    more = replace(PAGE, body=f"{BODY}- And `make cheers`.\n- Done.\n")
    one, other = stale_draft(more, {SCRIPT, ANNOUNCE}), stale_draft(more, {Named("task", "make cheers")})
    assert one is not None
    assert other is not None
    assert one.fingerprint != other.fingerprint


def test_a_page_of_whose_lines_something_is_left_is_pinned_or_is_of_another_kind_stays() -> None:
    gone = {SCRIPT, ANNOUNCE}
    assert stale_draft(PAGE, set()) is None
    assert stale_draft(PAGE, {ANNOUNCE}) is None, "its line has the script, too"
    assert stale_draft(replace(PAGE, pinned=True), gone) is None
    assert stale_draft(replace(PAGE, body="- Be kind.\n"), gone) is None
    assert stale_draft(replace(PAGE, kind="decision"), gone) is None
