"""Command lines that are the same but for dress are one command; others are not."""

from __future__ import annotations

import pytest

from everkept.domain.digest.clip import one_line
from everkept.domain.digest.commands import read_command
from everkept.domain.digest.outcomes import error_line, failure_mark


def key(line: str, cwd: str = "/repo") -> str:
    return read_command(line, cwd, "/repo").key


def shown(line: str, cwd: str = "/repo") -> str:
    return read_command(line, cwd, "/repo").shown


@pytest.mark.parametrize(
    "line",
    [
        "pytest tests/test_a.py",
        "cd /repo && pytest tests/test_a.py",
        "python -m pytest tests/test_a.py -v",
        "python3 -m pytest  tests/test_a.py 2>&1 | tail -20",
        "CI=1 FORCE_COLOR=0 .venv/bin/pytest -xq tests/test_a.py",
        "/repo/.venv/bin/python -m pytest /repo/tests/test_a.py",
        "uv run pytest tests/test_a.py",
        "timeout 60 pytest tests/test_a.py || true",
        'bash -lc "pytest tests/test_a.py"',
        "source .venv/bin/activate && pytest tests/test_a.py; echo done",
        "pytest tests/test_a.py > out.log 2>&1",
        "export A=1; pytest tests/test_a.py",
    ],
)
def test_dress_does_not_make_another_command(line: str) -> None:
    assert (key(line), shown(line)) == (key("pytest tests/test_a.py"), "pytest tests/test_a.py")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("pytest tests/test_a.py", "pytest tests/test_b.py"),
        ("npm test", "npm run build"),
        ("cd web && npm test", "npm test"),
        ("docker run -v a:b image", "docker run image"),
        ("python - <<'EOF'\nprint(1)\nEOF", "python - <<'EOF'\nprint(2)\nEOF"),
        ("grep -v a f", "grep a f"),
    ],
)
def test_what_does_something_else_is_another_command(one: str, other: str) -> None:
    assert key(one) != key(other)


def test_a_folder_below_the_sessions_own_belongs_to_the_command() -> None:
    assert shown("cd web && npm test") == "npm test (in web)"
    assert key("npm test", cwd="/repo/web") == key("cd web && npm test")


def test_a_folder_belongs_to_the_command_in_parentheses_and_outside_of_the_session_too() -> None:
    assert key("(cd web && npm test)") == key("cd web && npm test")
    assert shown("cd ~/other && npm test") == "npm test (in ~/other)"


def test_a_commit_tried_again_with_another_message_is_the_same_command() -> None:
    message = 'git commit -m "$(cat <<\'EOF\'\nIt\'s (a) "message"\n\nMore\nEOF\n)"'
    assert key(message) == key("git commit -m 'other words'")
    assert shown(message) == 'git commit -m "It\'s (a) "message""'


def test_a_chain_that_succeeds_proves_each_of_its_parts() -> None:
    chain = read_command("ruff check . && pytest && git push", "/repo", "/repo")
    assert {key("ruff check ."), key("pytest"), key("git push"), chain.key} == set(chain.proves)


def test_what_stands_before_a_semicolon_is_not_proved() -> None:
    assert key("pytest") not in read_command("pytest; git push", "/repo", "/repo").proves
    assert key("pytest") in read_command("set -e\npytest\ngit push", "/repo", "/repo").proves


@pytest.mark.parametrize(
    ("line", "looks"),
    [
        ("ls -la && git status", True),
        ("cat a.py | grep def | head -3", True),
        ("git -C sub log --oneline", True),
        ("echo hi > a.txt", False),
        ("sed -n 1,20p a.py", True),
        ("sed -i s/a/b/ a.py", False),
        ("find . -name '*.pyc' -delete", False),
        ("npm test", False),
        ("git commit -m x", False),
    ],
)
def test_commands_that_only_look_are_told_apart(line: str, looks: bool) -> None:
    assert read_command(line, None, None).looks is looks


@pytest.mark.parametrize(
    "line", ["", "   ", "'", '"', "$(", "`", "<<EOF", "a <<'EOF'\nb", "\\", "&& || ;", "cd", "\u2003x"]
)
def test_any_line_is_taken_apart(line: str) -> None:
    assert len(read_command(line, None, None).shown) <= 160


@pytest.mark.parametrize(
    ("output", "line"),
    [
        (
            "Exit code 1\nTraceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    x\n"
            "NameError: name 'x' is not defined",
            "NameError: name 'x' is not defined",
        ),
        (
            "===== FAILURES =====\nE       assert 1 == 2\n==== short test summary info ====\n"
            "FAILED tests/test_a.py::test_b - assert 1 == 2\n1 failed in 0.1s",
            "FAILED tests/test_a.py::test_b - assert 1 == 2",
        ),
        ("> tsc\n\nsrc/a.ts(3,5): error TS2322: Type 'x'.\nFound 1 error.", "src/a.ts(3,5): error TS2322: Type 'x'."),
        ("Compiling a\nerror[E0308]: mismatched types\n --> src/main.rs:4:5",
         "error[E0308]: mismatched types --> src/main.rs:4:5"),
        ("ok  a 0.1s\n--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/x (0.00s)\n        a_test.go:6: got 1",
         "--- FAIL: TestA (0.00s) a_test.go:6: got 1"),
        ("Exit code 127\nbash: line 1: foo: command not found", "bash: line 1: foo: command not found"),
        ("checked 12 files, 0 errors\nwarning: x\nfatal: not a git repository", "fatal: not a git repository"),
        ("\x1b[31mERROR\x1b[0m build failed", "ERROR build failed"),
        ("Exit code: 2\nWall time: 0.1 seconds\nOutput:\nmake: *** [all] Error 1", "make: *** [all] Error 1"),
        ("Exit code 3", ""),
        ("something\nodd", "something"),
    ],
)  # fmt: skip
def test_the_first_line_that_tells_the_error_is_found(output: str, line: str) -> None:
    assert error_line(output) == line


@pytest.mark.parametrize(
    ("output", "failed"),
    [
        ("==== 1 failed, 2 passed in 0.1s ====", True),
        ("==== 2 passed in 0.1s ====", False),
        ("Tests:       1 failed, 4 passed, 5 total", True),
        ("0 failed, 0 errors", False),
        ("npm ERR! code ELIFECYCLE", True),
        ("Found 0 errors.", False),
        ("Command: x\nOutput: y\nExit Code: 1", True),
        ("Command: x\nOutput: y\nExit Code: 0", False),
    ],
)
def test_an_output_tells_failure_only_beyond_doubt(output: str, failed: bool) -> None:
    assert (failure_mark(output) is not None) is failed


def test_text_is_cut_between_words_and_never_inside_one() -> None:
    assert one_line("alpha  beta\n gamma", 12) == "alpha beta …"
    assert one_line("a" * 500, 40) == "[one word of 500 characters]"
    assert one_line("数据库迁移失败了请重试", 8) == "数据库迁移失 …"
    assert one_line("e\u0301" * 30, 10) == "…"
