"""The net effect on each file."""

from __future__ import annotations

import pytest
from tests.unit.domain.digest.sessions import edit, event, failing, prompt, shell, stream, tool

from everkept.domain.digest import digest_session
from everkept.domain.session import AgentEvent


def effects(*events: AgentEvent) -> dict[str, str]:
    digest = digest_session(stream([prompt("go"), *events]))
    return {change.path: change.words for change in digest.files}


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([edit("/repo/a.py", "created"), edit("/repo/a.py"), edit("a.py")], {"a.py": "created, edited 2 times"}),
        ([edit("a.py"), edit("a.py"), edit("a.py")], {"a.py": "edited 3 times"}),
        ([edit("a.py", "created"), shell("rm a.py")], {}),
        ([edit("a.py"), shell("rm -f a.py")], {"a.py": "deleted"}),
        ([shell("rm a.py"), edit("a.py", "created")], {"a.py": "edited"}),
        ([shell("mv a.py b.py")], {"b.py": "moved from a.py"}),
        ([edit("a.py"), shell("git mv a.py src/a.py")], {"src/a.py": "moved from a.py, edited"}),
        ([shell("mv a.py b.py"), shell("mv b.py a.py")], {}),
        ([edit("a.py", "created"), shell("mv a.py b.py")], {"b.py": "created"}),
        ([edit("old.py"), edit("new.py", "created"), shell("mv new.py old.py")], {"old.py": "edited 2 times"}),
        ([shell("mkdir src && echo x > src/a.py"), shell("mv lib.py src")],
         {"src/a.py": "created", "src/lib.py": "moved from lib.py"}),
        ([edit("src/a.py"), edit("src/b.py", "created"), shell("rm -r src")],
         {"src/a.py": "deleted", "src": "deleted"}),
        ([shell("mkdir tmp && touch tmp/a && rm -rf tmp")], {}),
        ([edit("src/a.py"), shell("mv src lib")], {"lib/a.py": "moved from src/a.py, edited"}),
        ([edit("a.py"), shell("git checkout -- a.py")], {"a.py": "edited, then restored from git"}),
        ([edit("a.py", "deleted")], {"a.py": "deleted"}),
        ([edit("a.py", "moved to b.py")], {"b.py": "moved from a.py"}),
        ([edit("/etc/hosts"), edit("/repository/a.py")], {"/etc/hosts": "edited", "/repository/a.py": "edited"}),
        ([tool("Read", "read", paths=("/repo/a.md",)), shell("cat > a.md <<'EOF'\nrm b.md\nEOF")], {"a.md": "edited"}),
        ([shell("cd web && sed -i 's/a/b/' x.ts")], {"web/x.ts": "edited"}),
        ([shell("pytest > /dev/null 2>&1")], {}),
    ],
)  # fmt: skip
def test_each_file_has_its_net_effect(events: list[AgentEvent], expected: dict[str, str]) -> None:
    assert effects(*events) == expected


def test_only_successful_changes_count() -> None:
    failed, denied = edit("a.py", outcome="failed"), edit("b.py", outcome="denied")
    assert effects(failed, denied, failing("rm c.py", "rm: cannot remove 'c.py'")) == {}


def test_an_outcome_that_is_not_known_is_said() -> None:
    assert effects(edit("a.py", outcome="unknown")) == {"a.py": "edited (not confirmed)"}


def test_steps_before_the_one_that_failed_count_though_nothing_confirms_them() -> None:
    script = "cat > t.py <<'EOF'\nassert 0\nEOF\npython t.py > out.txt"
    assert effects(failing(script, "AssertionError")) == {"t.py": "created (not confirmed)"}
    assert effects(failing("mv a b && pytest", "mv: cannot stat 'a': No such file or directory")) == {}


def test_steps_of_a_script_given_to_a_shell_count_before_the_one_that_failed() -> None:
    line = "bash -lc 'echo hi > a.txt && rm b.txt && pytest'"
    assert set(effects(failing(line, "1 failed"))) == {"a.txt", "b.txt"}


def test_paths_are_relative_to_the_folder_of_the_session_wherever_the_call_ran() -> None:
    call = edit("x.ts").tool
    assert effects(event("tool", tool=call, cwd="/repo/web")) == {"web/x.ts": "edited"}


def test_files_that_came_and_went_are_counted() -> None:
    digest = digest_session(stream([prompt("go"), edit("a.py", "created"), shell("rm a.py")]))
    assert dict(digest.left_out) == {"files made and deleted again": 1}
