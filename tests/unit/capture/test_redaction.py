"""Redaction: no secret is kept, plain text is left alone, and nothing changes when it is done twice."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.redaction.corpus import TOKENS, Sample, make_held_out, make_ordinary, make_secrets

from everkept.capture.redaction import (
    EngineName,
    cleaned,
    find_secrets,
    redact,
    redact_json,
    redacted_and_shortened,
    strip_private,
    unusable_rules,
)
from everkept.capture.redaction.image import image_of
from everkept.capture.redaction.patterns import NotTranslatable, compiled, python_syntax, word_finder
from everkept.capture.redaction.vendored import source, vendored_rules
from everkept.domain.session import FIELD_CHARS_MAX
from everkept.hook.hook_script import secrets_in

ENGINES: tuple[EngineName, ...] = ("re2", "re")
SECRETS = list(make_secrets(seed=1, rounds=1))
LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=10)
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=8), inner))
LETTERS_LEFT = 10
"""So many characters of a longer secret in a row are a part of it that is left."""


def is_gone(secret: str, text: str) -> bool:
    """Neither the secret nor, of a long one, a part of it is in the text."""
    if len(secret) < 16:
        return secret not in text
    return not any(secret[n : n + LETTERS_LEFT] in text for n in range(len(secret) - LETTERS_LEFT + 1))


def missed(samples: list[Sample], engine: EngineName) -> list[Sample]:
    return [s for s in samples if not all(is_gone(secret, redact(s.text, engine=engine).text) for secret in s.secrets)]


@pytest.mark.parametrize("engine", ENGINES)
def test_at_least_98_of_100_secrets_of_the_corpus_are_gone(engine):
    assert len(SECRETS) > 1_300
    assert len(missed(SECRETS, engine)) <= 0.02 * len(SECRETS)


@pytest.mark.parametrize("engine", ENGINES)
def test_secrets_that_their_shape_gives_away_are_gone_in_every_place(engine):
    by_shape = [sample for sample in SECRETS if sample.kind in TOKENS]
    assert missed(by_shape, engine) == []


def test_nine_of_ten_secrets_are_gone_in_places_that_the_rules_were_not_written_against():
    held_out = list(make_held_out())
    assert len(missed(held_out, "re2")) <= 0.1 * len(held_out)


@pytest.mark.parametrize("engine", ENGINES)
def test_ordinary_text_has_at_most_one_false_hit_a_megabyte(engine):
    texts = list(make_ordinary(chars=1_000_000))
    assert sum(len(find_secrets(text, engine=engine)) for text in texts) <= 1


def test_ordinary_text_is_left_as_it_is():
    for text in make_ordinary(seed=5, chars=200_000):
        assert text == redact(text).text


def test_the_python_library_has_at_most_one_false_hit_a_megabyte():
    library = sorted(Path(json.__file__).parents[1].glob("*.py"))
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in library]
    chars = sum(map(len, texts))
    assert chars > 2_000_000
    assert sum(len(find_secrets(text)) for text in texts) <= chars / 1_000_000


@pytest.mark.parametrize("sample", SECRETS[::40], ids=lambda sample: sample.kind)
def test_redacting_twice_changes_nothing(sample):
    once = redact(sample.text)
    assert redact(once.text).text == once.text
    assert find_secrets(once.text) == []


@given(st.lists(st.one_of(st.sampled_from([s.text for s in SECRETS]), st.text(max_size=20)), max_size=5), st.data())
@settings(max_examples=150, deadline=None)
def test_redacting_twice_changes_nothing_however_texts_are_joined_and_cut(texts, data):
    text = "".join(texts)
    cut = text[data.draw(st.integers(0, len(text))) :]
    once = redact(cut).text
    assert redact(once).text == once


@given(st.text())
@settings(max_examples=200, deadline=None)
def test_the_image_has_one_ascii_byte_for_each_character(text):
    image = image_of(text)
    assert (len(text), True) == (len(image), image.isascii())


@given(st.text(alphabet=st.characters(codec=None), max_size=40), st.text(max_size=40))
@settings(max_examples=100, deadline=None)
def test_a_token_is_found_whatever_stands_around_it(before, after):
    token = TOKENS["github-pat"](Random(3))
    text = f"{before} {token} {after}"
    assert is_gone(token, redact(text).text)


@given(st.sampled_from(SECRETS), st.integers(-300, 300))
@settings(max_examples=100, deadline=None)
def test_a_secret_that_straddles_the_cut_is_gone(sample, shift):
    head = "lorem ipsum dolor sit amet, " * 2_000
    at = FIELD_CHARS_MAX // 2 + shift
    text = f"{head[:at]}\n{sample.text}\n{head}"
    kept = redacted_and_shortened(text).text
    assert len(kept) <= FIELD_CHARS_MAX + 100
    for secret in sample.secrets:
        assert all(secret[n : n + 16] not in kept for n in range(max(1, len(secret) - 15)))


def test_counts_name_the_rules_and_markers_stand_in_the_text():
    token = TOKENS["github-pat"](Random(4))
    redacted = redact(f"a {token} b {token}")
    assert (redacted.text, redacted.counts) == ("a [redacted:github-pat] b [redacted:github-pat]", {"github-pat": 2})


def test_found_says_where_in_characters_and_never_what():
    token = TOKENS["stripe-live"](Random(5))
    text = f"密码学 🔑 {token}。"
    (found,) = find_secrets(text)
    assert (token, "stripe-access-token") == (text[found.start : found.end], found.rule)
    assert token not in repr(found)


def test_a_secret_inside_another_is_one_hit_of_the_rule_that_says_more():
    token = TOKENS["github-pat"](Random(6))
    assert redact(f"GITHUB_TOKEN={token}").text == "GITHUB_TOKEN=[redacted:github-pat]"


def test_a_token_longer_than_its_rule_knows_goes_whole():
    token = TOKENS["github-pat"](Random(7)) + "Zz9" * 10
    assert redact(f"x {token}.").text == "x [redacted:github-pat]."


def test_an_unclosed_private_key_goes_to_the_end():
    key = "-----BEGIN OPENSSH PRIVATE " + "KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU\nAAAA"
    assert redact(f"before\n{key}\nand what follows").text == "before\n[redacted:private-key]"


@pytest.mark.parametrize(
    "spoken", ["if (text.startsWith('{}')) {{", "The file begins with `{}` and is text.", "grep -r '{}' ."]
)
def test_the_first_line_of_a_private_key_that_is_only_spoken_of_stays(spoken):
    text = spoken.format("-----BEGIN PRIVATE " + "KEY-----")
    assert text == redact(text).text


@pytest.mark.parametrize(
    "text",
    [
        "password: str",
        "DB_PASSWORD=${DB_PASSWORD}",
        "export TOKEN=$(cat token)",
        "API_KEY=<your key>",
        "password=********",
        "token = response.json()['access_token']",
        "max_tokens=4096",
        "Password: (hidden)",
        "commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        "postgres://user:password@localhost/db",
        "git@github.com:team/app.git",
    ],
)
def test_what_only_stands_where_a_secret_would_stays(text):
    assert text == redact(text).text


def test_json_fields_go_by_their_names_and_keep_their_shape():
    value: dict[str, Any] = {
        "user": "ada", "password": "hunter" + "2", "port": 5432, "on": True, "none": None,
        "env": [{"name": "DB_PASSWORD", "value": "hunter" + "2"}, {"name": "MODE", "value": "fast"}],
        "argv": ["tool", "--password", "hunter" + "2", "--verbose"],
        "nested": {"apiKey": "k3J9pQ" + "x7Yz2wRt5", "keys": ["a", "b"]}, "pin_password": 482913,
    }  # fmt: skip
    marker = "[redacted:assignment]"
    expected = {
        "user": "ada", "password": marker, "port": 5432, "on": True, "none": None,
        "env": [{"name": "DB_PASSWORD", "value": marker}, {"name": "MODE", "value": "fast"}],
        "argv": ["tool", "--password", marker, "--verbose"],
        "nested": {"apiKey": marker, "keys": ["a", "b"]}, "pin_password": marker,
    }  # fmt: skip
    assert expected == redact_json(value)
    assert expected == redact_json(redact_json(value))


def test_two_json_fields_whose_names_are_secrets_are_both_kept():
    make, rng = TOKENS["github-pat"], Random(8)
    value = redact_json({make(rng): 1, make(rng): 2})
    assert list(value.values()) == [1, 2]
    assert all(name.startswith("[redacted:github-pat]") for name in value)


@given(JSON)
@settings(max_examples=100, deadline=None)
def test_json_without_secrets_stays_equal_and_redacting_twice_changes_nothing(value):
    once = redact_json(value)
    assert once == redact_json(once)
    assert type(value) is type(once) or not isinstance(value, dict | list)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a <private>b</private> c", "a  c"),
        ("a <PRIVATE>b</Private> c", "a  c"),
        ("a <private>b <private>c</private> d</private> e", "a  e"),
        ("a <private>b", "a "),
        ("<private>a</private>b<private>c</private>d", "bd"),
        ("a &lt;private&gt;b&lt;/private&gt; c", "a  c"),
        ("a\n<private reason='x'>\nb\n</private>\nc", "a\n\nc"),
        ("<pri<private>x</private>vate>y", ""),
        ("no marks, but privateer and <privates>", "no marks, but privateer and <privates>"),
        ("a </private> b", "a </private> b"),
    ],
)
def test_private_parts_go(text, kept):
    assert kept == strip_private(text)


@given(st.lists(st.sampled_from(["<private>", "</private>", "<PRIVATE >", "x", "<", " "]), max_size=12))
@settings(deadline=None)
def test_stripping_twice_changes_nothing(pieces):
    once = strip_private("".join(pieces))
    assert once == strip_private(once)


def test_every_vendored_rule_runs_on_re2_and_the_others_are_listed():
    assert [rule.rule for rule in unusable_rules("re2")] == ["pkcs12-file"]
    assert {"pkcs12-file", "kubernetes-secret-yaml"} == {rule.rule for rule in unusable_rules("re")}
    assert all(rule.reason for rule in unusable_rules("re"))
    assert len(vendored_rules()) > 200
    assert "gitleaks 8.30.1" in source()


@pytest.mark.parametrize(
    ("pattern", "written"),
    [
        (r"(?i)abc", r"(?i)abc"),
        (r"ab(?i)c", r"ab(?i:c)"),
        (r"(a(?i)b|c)d", r"(a(?i:b)|(?i:c))d"),
        (r"[[:alnum:]]\z", r"[a-zA-Z0-9]\Z"),
        (r"\(?i\)[(?i)]", r"\(?i\)[(?i)]"),
    ],
)
def test_patterns_of_re2_are_written_in_python_syntax(pattern, written):
    assert written == python_syntax(pattern)
    re.compile(written)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_pattern_that_an_engine_cannot_run_is_refused_with_a_reason(engine):
    with pytest.raises(NotTranslatable, match=r"."):
        compiled("(unclosed", engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_words_are_found_in_whatever_case(engine):
    find = word_finder(["token", "key", "xoxb"], engine)
    assert ({0, 1}, set(), set()) == (find(b"my TOKEN and Key"), find(b"nothing"), find(b""))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("sample", SECRETS[::15], ids=lambda sample: sample.kind)
def test_what_the_hook_masks_is_masked_on_every_other_way_in(sample, engine):
    masked = [sample.text[start:end] for start, end, _ in secrets_in(sample.text)]
    text = redact(sample.text, engine=engine).text
    assert [secret for secret in masked if secret in text] == []


def test_a_token_by_its_shape_is_a_secret_however_little_random_it_is():
    token = "ghp_" + "a1B2" * 9
    assert secrets_in(token)
    assert redact(f"use {token} here").text == "use [redacted:github-token] here"


def test_what_is_cleaned_holds_neither_secrets_nor_private_parts():
    token = "ghp_" + "7Yk2mQx9LrT4vBn8WcZ3pHs6JdF1gKa5Ue0R"
    assert cleaned(f"Use {token}.<private> The safe: 4711.</private> Done.") == "Use [redacted:github-pat]. Done."
