"""Errors and commands made equal, and wishes in whatever words."""

from __future__ import annotations

import pytest

from everkept.domain.command_line import steps_of
from everkept.domain.review.signatures import step_shape, text_shape
from everkept.domain.review.wish import Wish, wish_from, wish_of


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Error: connect ECONNREFUSED 127.0.0.1:5432", "Error: connect ECONNREFUSED localhost:6543"),
        ("open /tmp/a/b.txt: no such file", "open /var/x.log: no such file"),
        ("job 3f2a9c1d4e5b failed after 12.5s", "job 9b8a7c6d5e4f failed after 3.1s"),
        ("2026-01-02T03:04:05Z ERROR no route", "2027-11-30 10:20:30,123 ERROR no route"),
        (
            "request 0b7c4a2e-1111-2222-3333-444455556666 timed out",
            "request aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee timed out",
        ),
        ("src/a.py:12:5: undefined name", "lib/deep/b.py:7: undefined name"),
        ("GET https://a.example/x gave 503", "GET https://b.example/y?z=1 gave 500"),
    ],
)
def test_lines_that_differ_in_paths_numbers_ids_and_times_are_one_error(one: str, other: str) -> None:
    assert text_shape(one) == text_shape(other)


def test_names_in_an_error_stay() -> None:
    assert text_shape("ModuleNotFoundError: No module named 'yaml'") == "modulenotfounderror: no module named 'yaml'"
    assert text_shape("Cannot find module '@acme/ui'") != text_shape("Cannot find module '@acme/core'")


@pytest.mark.parametrize(
    ("command", "shape"),
    [
        ("git commit -m 'fix the parser'", "git commit -m <text>"),
        ("git tag v1.20.3", "git tag <version>"),
        ("npm version 2.0.1", "npm version <version>"),
        ("docker build -t acme:1.2.3 .", "docker build -t acme:<version> ."),
        ("git add src/a.py src/b.py", "git add <path>"),
        ("pytest tests/a.py tests/b.py -q", "pytest <path> -q"),
        ("kubectl apply -f k8s/prod.yaml", "kubectl apply -f k8s/prod.yaml"),
        ("python scripts/release.py 7", "python scripts/release.py <n>"),
        ("./scripts/deploy.sh staging", "./scripts/deploy.sh staging"),
        ("FORCE=1 /usr/bin/make test", "make test"),
        ("git checkout -b fix/parser", "git checkout -b <branch>"),
        ("go test ./...", "go test ./..."),
    ],
)
def test_a_command_is_the_same_step_whatever_it_was_run_on(command: str, shape: str) -> None:
    assert step_shape(steps_of(command)[0]) == shape


@pytest.mark.parametrize(
    "said",
    [
        "use pnpm, not npm", "please use pnpm instead of npm!", "I told you: never npm, only pnpm",
        "always use pnpm and never npm", "bitte pnpm statt npm verwenden", "usa pnpm en vez de npm",
        "use pnpm no lugar de npm, por favor", "utilise pnpm au lieu de npm", "npmではなくpnpmを使ってください",
        "不要用npm，用pnpm", "用pnpm而不是npm",
    ],
)  # fmt: skip
def test_one_wish_has_one_shape_in_whatever_words_and_language(said: str) -> None:
    assert wish_of(said).shape == "pnpm | npm"


def test_what_stands_in_a_forbidden_clause_is_all_unwanted() -> None:
    assert wish_of("Don't mock the database in integration tests").shape == "| databas integr mock test"
    assert wish_of("no, integration tests must not mock the database").shape == "| databas integr mock test"


def test_opposite_wishes_contradict_and_are_never_alike() -> None:
    one, other = wish_of("use pnpm, not npm"), wish_of("use npm, not pnpm")
    assert one.contradicts(other)
    assert not one.is_like(other)


def test_a_narrower_wish_of_two_words_is_alike_and_one_word_alone_is_not() -> None:
    assert wish_of("don't push to main").is_like(wish_of("never push to main directly"))
    assert not wish_of("don't use npm").is_like(wish_of("use pnpm, not npm"))


def test_a_wish_comes_back_from_its_shape() -> None:
    for said in ("use pnpm, not npm", "don't push to main", "squash commits"):
        assert wish_from(wish_of(said).shape) == wish_of(said)


def test_a_single_wanted_word_and_a_story_tell_nothing() -> None:
    assert not wish_of("run the tests").tells
    assert not Wish(frozenset("abcdefghijkl"), frozenset()).tells
    assert wish_of("no npm").tells
