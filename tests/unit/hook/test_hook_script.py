"""What the hook takes out of a text before it is written down, and what it says of a place."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from everkept.hook import hook_script
from everkept.hook.hook_script import (
    BEYOND_CHARS,
    CROWDED_CHARS_MAX,
    FIELD_CHARS_MAX,
    RECORD_CHARS_MAX,
    Tally,
    normalised_remote,
    place_of,
    scope_key,
    secrets_in,
    without_credentials,
)

RNG = random.Random(5)
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def some(count: int, of: str = LETTERS) -> str:
    """Made up here, so that no file of the project holds what looks like a secret."""
    return "7" + "".join(RNG.choices(of, k=count - 1))


def clean(value: Any, tally: Tally | None = None) -> Any:
    return hook_script._clean(value, "", tally or Tally())


UPPER, HEX = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "0123456789abcdef"
SECRETS = {
    "aws": "AKIA" + some(16, UPPER),
    "github": "ghp_" + some(36),
    "github, fine": "github_pat_" + some(40),
    "gitlab": "glpat-" + some(20),
    "openai": "sk-proj-" + some(40),
    "anthropic": "sk-ant-api03-" + some(60),
    "groq": "gsk_" + some(48),
    "stripe": "sk_live_" + some(24),
    "stripe hook": "whsec_" + some(32),
    "google": "AIza" + some(35),
    "google token": "ya29." + some(50),
    "slack": "xoxb-" + some(30),
    "slack hook": "https://hooks.slack.com/services/" + some(30),
    "discord hook": "https://discord.com/api/webhooks/123456789012/" + some(60),
    "telegram": "123456789:AA" + some(33),
    "npm": "npm_" + some(36),
    "pypi": "pypi-AgEIcHlwaS5vcmc" + some(60),
    "hugging face": "hf_" + "a" * 34,
    "sendgrid": "SG." + some(22) + "." + some(43),
    "digitalocean": "dop_v1_" + some(64, HEX),
    "vault": "hvs." + some(30),
    "shopify": "shpat_" + some(32, HEX),
    "linear": "lin_api_" + some(40),
    "azure": "AccountKey=" + some(86) + "==",
    "age": "AGE-SECRET-KEY-1" + some(58, UPPER),
    "jwt": "eyJ" + some(20) + ".eyJ" + some(60) + "." + some(43),
    "bearer": "Authorization: Bearer " + some(30),
    "basic": "authorization: basic " + some(24),
    "URL": "postgres://app:" + some(12) + "@db.example.com/app",
    "environment": "export DB_PASSWORD=" + some(12),
    "YAML": "api_key: " + some(20),
    "JSON": '{"client_secret": "' + some(20) + '"}',
    "JSON in JSON": '{\\"token\\": \\"' + some(20) + '\\"}',
    "code": "const apiKey = '" + some(20) + "'",
    "option": "login --password " + some(12),
}


def secret_part(whole: str) -> str:
    """The part of a sample that must not be found again."""
    return max(whole.replace("@db.example.com/app", "").translate({ord(c): " " for c in "\"'\\:=} /"}).split(), key=len)


@pytest.mark.parametrize("whole", SECRETS.values(), ids=SECRETS)
@pytest.mark.parametrize(("before", "after"), [("", ""), ("see ", " there\n"), ("密码", "在这里"), ("key=", ";")])
def test_a_secret_is_taken_out_wherever_it_stands(whole: str, before: str, after: str) -> None:
    tally = Tally()
    text = clean(before + whole + after, tally)
    assert secret_part(whole)[-6:] not in text
    assert "[redacted:" in text
    assert sum(tally.removed.values()) >= 1
    assert text.startswith(before[:2])


@pytest.mark.parametrize(
    "text",
    [
        "the token count is 4096 and max_tokens=4096, the password field is empty",
        "password = getpass.getpass('Password: ')",
        "token = os.environ['GITHUB_TOKEN']",
        "Authorization: Bearer $TOKEN",
        "api_key: ${API_KEY}",
        "self.token = token",
        "def secret(name: str) -> str: ...",
        "https://example.com:8080/path@2x.png",
        "git@github.com:acme/app.git",
        "commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        "sk-learn is a nickname; task-management-for-the-team-of-tomorrow",
        "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        'if "-----BEGIN PRIVATE KEY-----" in text: raise ValueError(text) and go on with the rest',
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert clean(text) == text


def test_a_field_with_the_name_of_a_secret_is_taken_out_whole() -> None:
    tally = Tally()
    said = {"env": {"DB_PASSWORD": "correct horse", "token": "plain-words", "max_tokens": 5, "path": "/a/password.py"}}
    assert clean(said, tally) == {
        "env": {
            "DB_PASSWORD": "[redacted:named]",
            "token": "[redacted:named]",
            "max_tokens": 5,
            "path": "/a/password.py",
        }
    }
    assert tally.removed == {"named": 2}


@pytest.mark.parametrize(
    ("text", "left", "parts"),
    [
        ("a <private>b</private> c <PRIVATE>d\ne</Private> f", "a  c  f", 2),
        ("a <private>b <private>c</private> d</private> e", "a  e", 1),
        ("a <private reason='x'>b</private>c", "a c", 1),
        ("a < private >b</ private >c", "a c", 1),
        ("a <private>to the end", "a ", 1),
        ("a <private>b</private> c <private>d", "a  c ", 2),
        ("a </private> b <private>c</private>", "a </private> b ", 1),
        ("class A { private int b; } List<privateType>", "class A { private int b; } List<privateType>", 0),
    ],
)
def test_what_is_marked_private_goes(text: str, left: str, parts: int) -> None:
    tally = Tally()
    assert clean(text, tally) == left
    assert tally.removed.get("private", 0) == parts


KEY_LINES = "\n".join(some(64) for _ in range(24))
KEY = f"-----BEGIN RSA PRIVATE KEY-----\n{KEY_LINES}\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        (f"before\n{KEY}\nafter", "before\n[redacted:private-key]\nafter"),
        (f"a {KEY} b {KEY} c", "a [redacted:private-key] b [redacted:private-key] c"),
        (KEY.replace("RSA ", "").replace("\n", "\\n"), "[redacted:private-key]"),
        (KEY.replace("RSA", "OPENSSH"), "[redacted:private-key]"),
        (f"密钥{KEY}完", "密钥[redacted:private-key]完"),
        ("$ head key.pem\n" + KEY[:700], "$ head key.pem\n[redacted:private-key]"),
        ("$ tail key.pem\n" + KEY[700:] + "\n$", "$ tail key.pem\n[redacted:private-key]\n$"),
        ("x: " + KEY[700:].replace("\n", "\\n"), "x: [redacted:private-key]"),
        (
            "".join(f"{n:6}→{line}\n" for n, line in enumerate(KEY.split("\n"), 1)) + "z",
            "     1→[redacted:private-key]\nz",
        ),
    ],
)
def test_a_private_key_goes_whole_though_an_end_is_missing(text: str, cleaned: str) -> None:
    tally = Tally()
    assert clean(text, tally) == cleaned
    assert tally.removed["private-key"] == cleaned.count("[redacted")


def test_a_private_key_longer_than_what_is_looked_at_goes_whole() -> None:
    long_key = "-----BEGIN PRIVATE KEY-----\n" + "\n".join(some(64) for _ in range(1_500))
    tally = Tally()
    assert clean(f"a\n{long_key}", tally) == "a\n[redacted:private-key]"
    assert clean(f"a\n{long_key}\n-----END PRIVATE KEY-----\nb", tally) == "a\n[redacted:private-key]\nb"


@pytest.mark.parametrize("offset", [-40, -20, -1, 0, 5])
def test_a_secret_across_a_cut_leaves_no_part(offset: int) -> None:
    half, secret = FIELD_CHARS_MAX // 2, SECRETS["github"]
    text = "." * (half + offset) + secret + "." * 100_000 + secret + "." * (half + offset)
    tally = Tally()
    cleaned = clean({"output": text}, tally)["output"]
    assert not any(secret[at : at + 8] in cleaned for at in range(4, len(secret) - 8))
    assert tally.cut == {"output": len(text) - FIELD_CHARS_MAX}
    assert f"[… {len(text) - FIELD_CHARS_MAX:,} characters cut …]" in cleaned


def test_what_redaction_frees_lets_nothing_unseen_slip_in() -> None:
    """A head that shrinks must not draw in text from beyond what was looked at."""
    secret = SECRETS["github"]
    text = (secret + " ") * 2_000 + secret[:20] + "x" * 100_000
    cleaned = clean(text)
    assert secret[4:] not in cleaned
    assert len(cleaned) < FIELD_CHARS_MAX + 100


def test_a_long_text_without_secrets_keeps_exactly_its_ends() -> None:
    half = FIELD_CHARS_MAX // 2
    text = "".join(RNG.choices("abc de\n", k=FIELD_CHARS_MAX + 1))
    assert clean(text) == f"{text[:half]}\n[… 1 characters cut …]\n{text[-half:]}"
    assert clean(text[:-1]) == text[:-1]


def test_a_crowded_record_keeps_little_of_what_comes_last() -> None:
    count = RECORD_CHARS_MAX // FIELD_CHARS_MAX + 5
    tally = Tally()
    cleaned = clean({str(n): "y" * FIELD_CHARS_MAX for n in range(count)}, tally)
    assert len(cleaned["0"]) == FIELD_CHARS_MAX
    assert len(cleaned[str(count - 1)]) < CROWDED_CHARS_MAX + 50
    assert sum(map(len, cleaned.values())) < RECORD_CHARS_MAX + count * (CROWDED_CHARS_MAX + 50)


def test_no_pattern_takes_long_over_any_text() -> None:
    """Each is linear: long runs of what patterns begin with, without the end that they wait for."""
    import time

    window = FIELD_CHARS_MAX // 2 + BEYOND_CHARS
    for run in (
        "eyJa",
        "://a:",
        "token: '",
        "--password ",
        "a.b-",
        "bearer ",
        "sk-",
        "xox",
        "password=",
        ".",
        "A",
        " ",
    ):
        text = ("token= :// bearer eyj sk- xoxb- dapi --password " + run * window)[:window]
        began = time.process_time()
        secrets_in(text)
        assert time.process_time() - began < 2.0, run


# ---- places

REMOTES = [
    "https://github.com/Acme/App.git",
    "https://ana:pass@github.com/Acme/App",
    "http://token@github.com/acme/app/",
    "git@github.com:Acme/App.git",
    "github.com:acme/app",
    "ssh://git@github.com:22/acme/app.git",
    "git://github.com/acme/app.git?x=1#y",
    "github.com/acme/app",
]


@pytest.mark.parametrize("url", REMOTES)
def test_every_way_to_write_a_remote_is_one_scope(url: str) -> None:
    assert normalised_remote(url) == "github.com/acme/app"
    elsewhere = {"cwd": "/elsewhere", "place": {"remote": REMOTES[0], "common_dir": "/elsewhere/.git"}}
    assert scope_key({"cwd": "/x", "place": {"remote": url, "common_dir": "/x/.git"}}) == scope_key(elsewhere)


@pytest.mark.parametrize(
    "url", ["/srv/git/app.git", "../app", "file:///srv/app", "~/app", "C:\\git\\app", "C:/git/app", ""]
)
def test_a_remote_on_this_machine_names_no_scope(url: str) -> None:
    assert normalised_remote(url) == ""
    assert scope_key({"place": {"remote": url, "common_dir": "/x/.git"}}) == scope_key(
        {"place": {"common_dir": "/x/.git"}}
    )


def test_a_scope_key_is_16_hex_digits_of_what_is_strongest() -> None:
    keys = [
        scope_key(record)
        for record in (
            {"cwd": "/x", "place": {"remote": "https://a.b/c", "common_dir": "/x/.git"}},
            {"cwd": "/x", "place": {"common_dir": "/x/.git"}},
            {"cwd": "/x"},
            {"cwd": "/x/../y"},
            {},
        )
    ]
    assert len(set(keys)) == 5
    assert all(len(key) == 16 and int(key, 16) >= 0 for key in keys)
    assert keys[1] == scope_key({"cwd": "/x/sub", "place": {"common_dir": "/x/.git", "branch": "b", "worktree": "w"}})


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("https://ana:s3cret@host/a/b.git", "https://host/a/b.git"),
        ("https://token@host:8443/a", "https://host:8443/a"),
        ("https://host/a?private_token=x", "https://host/a"),
        ("git@host:a/b.git", "host:a/b.git"),
        ("https://u:p@ss@host/a", "https://host/a"),
        ("/srv/a@b.git", "/srv/a@b.git"),
    ],
)
def test_a_remote_is_kept_without_credentials(url: str, plain: str) -> None:
    assert without_credentials(url) == plain


def test_a_submodule_is_a_place_of_its_own(tmp_path: Path) -> None:
    inner = tmp_path / ".git" / "modules" / "lib"
    inner.mkdir(parents=True)
    (inner / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / ".git").write_text("gitdir: ../.git/modules/lib\n")
    assert place_of(str(tmp_path / "lib")) == {"top": str(tmp_path / "lib"), "common_dir": str(inner), "branch": "main"}


def test_rubbish_in_place_of_gits_files_is_no_place(tmp_path: Path) -> None:
    (tmp_path / ".git").write_bytes(b"\xff\xfe\x00 rubbish")
    assert place_of(str(tmp_path)) == {"top": str(tmp_path), "common_dir": str(tmp_path / ".git")}


def test_kinds_are_found_by_any_spelling() -> None:
    names = ("PostToolUse", "postToolUse", "post-tool-use", "AfterTool", "UserPromptSubmit", "user-prompt", "??")
    assert [hook_script.kind_of(name) for name in names] == ["tool"] * 4 + ["prompt"] * 2 + ["other"]
