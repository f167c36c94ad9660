"""What lies ready beside the hook says the same as what takes longer to import: `re`, `tomllib`, `fnmatch`."""

from __future__ import annotations

import _sre  # type: ignore[import-not-found]
import fnmatch
import random
import re
import sys
import tomllib
from typing import Any

import pytest
from tests.data.redaction.corpus import make_held_out, make_secrets

from everkept.hook.hook_script import PATTERNS, is_like, plain_settings
from everkept.hook.ready_patterns import ready_patterns

MARKS = "<private> a </private> -----BEGIN RSA PRIVATE KEY----- -----END PRIVATE KEY BLOCK----- Proc-Type: \u017fecret"


def made() -> dict[str, Any]:
    module: dict[str, Any] = {}
    exec(ready_patterns(), module)  # noqa: S102 - it is ours, and a module
    return module


def test_a_ready_pattern_finds_what_re_finds() -> None:
    texts = [MARKS, *(sample.text for sample in (*make_secrets(), *make_held_out()))]
    ready = made()
    assert ready["VERSION"] == sys.hexversion
    matched = set()
    for pattern in PATTERNS:
        ours, theirs = _sre.compile(pattern, *ready["READY"][pattern]), re.compile(pattern, re.ASCII)
        assert (ours.flags, ours.groups, ours.groupindex) == (theirs.flags, theirs.groups, theirs.groupindex)
        for text in texts:
            found = [match.regs for match in theirs.finditer(text)]
            assert found == [match.regs for match in ours.finditer(text)]
            if found:
                matched.add(pattern)
    assert len(matched) > 0.8 * len(PATTERNS)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", {}),
        ("# nothing\n\n  off = true  # all of it\r\n", {"off": True}),
        ('ignore = ["secrets/**", "*.pem", ]\n', {"ignore": ["secrets/**", "*.pem"]}),
        ('ignore = []\nproject = "a # b"\nprompts=false', {"ignore": [], "project": "a # b", "prompts": False}),
        ('project = ""', {"project": ""}),
    ],
)
def test_usual_settings_are_read_without_tomllib(text: str, said: dict[str, object]) -> None:
    assert plain_settings(text) == said == tomllib.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        "off = true\noff = true", "off = 'true'", 'project = "a\\u0062"', 'ignore = [\n"a"]', "[table]", "a.b = true",
        "off true", 'project = """a"""', "off = True", 'ignore = ["a" "b"]', "n = 1", "\ufeffoff = true",
        'project = "a\tb"',
    ],
)  # fmt: skip
def test_unusual_settings_are_left_to_tomllib(text: str) -> None:
    said = plain_settings(text)
    assert said is None or said == tomllib.loads(text)


def test_no_text_is_read_otherwise_than_tomllib_reads_it() -> None:
    rng = random.Random(3)
    parts = ["a = ", "b-c=", "true", "false", '"', '"é"', '["x"', "[", "]", ", ", " # ", " ", "\n", "\r\n", "\t", "-"]
    read = 0
    for _ in range(5_000):
        text = "".join(rng.choices(parts, k=rng.randint(1, 7)))
        said = plain_settings(text)
        if said is not None:
            assert said == tomllib.loads(text), repr(text)
            read += bool(said)
    assert read > 50


def test_a_glob_is_taken_as_fnmatch_takes_it() -> None:
    rng = random.Random(4)
    hits = 0
    for _ in range(5_000):
        path = "".join(rng.choices("ab/.", k=rng.randint(0, 7)))
        glob = "".join(rng.choices("ab/.***?", k=rng.randint(0, 5)))
        assert is_like(path, glob) == fnmatch.fnmatchcase(path, glob), (path, glob)
        hits += is_like(path, glob)
    assert hits > 100
