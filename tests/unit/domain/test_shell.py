"""What a command line changes in which files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everkept.domain.shell import changes_of, changes_of_patch

PATCH = """*** Begin Patch
*** Add File: new.py
+print("*** Delete File: no.py")
*** Update File: old.py
*** Move to: moved.py
@@
-a
+b
*** Delete File: gone.py
*** End Patch
"""
PATCHED = (("new.py", "created"), ("old.py", "edited"), ("old.py", "moved to moved.py"), ("gone.py", "deleted"))


@pytest.mark.parametrize(
    ("command", "changes"),
    [
        ("echo hi > out.txt", [("out.txt", "created")]),
        ("echo hi >> log.txt", [("log.txt", "edited")]),
        ("make &> all.log", [("all.log", "created")]),
        ("rm -rf build 'my dist'", [("build", "deleted"), ("my dist", "deleted")]),
        ("sudo rm -f -- -x", [("-x", "deleted")]),
        ("mv a.ts b.ts", [("a.ts", "moved to b.ts")]),
        ("mv a b dir/", [("a", "moved to dir/a"), ("b", "moved to dir/b")]),
        ("cp .env.example .env", [(".env", "created")]),
        ("touch a b", [("a", "created"), ("b", "created")]),
        ("pytest 2>&1 | tee -a run.log", [("run.log", "edited")]),
        ("sed -i 's/a/b/' x.py y.py", [("x.py", "edited"), ("y.py", "edited")]),
        ("sed -i '' -e 's/a/b/' x.py", [("x.py", "edited")]),
        ("sed 's/a/b/' x.py", []),
        ("perl -pi -e 's/a/b/' x.rb", [("x.rb", "edited")]),
        ("git mv a b && git rm c && git rm --cached d", [("a", "moved to b"), ("c", "deleted")]),
        ("cd app && rm old.py && cd sub && touch ../new.py", [("app/old.py", "deleted"), ("app/new.py", "created")]),
        ("cd /srv && rm /tmp/x y", [("/tmp/x", "deleted"), ("/srv/y", "deleted")]),
        ("bash -lc 'echo hi > f.txt'", [("f.txt", "created")]),
        ("cat > a.py <<'EOF'\nrm b\nit's > c\nEOF\nrm d", [("a.py", "created"), ("d", "deleted")]),
        ("cat <<A > f1\nx\nA\ncat <<B > f2\ny\nB", [("f1", "created"), ("f2", "created")]),
        ("git commit -m \"$(cat <<'EOF'\ndon't > break\nEOF\n)\" && rm x", [("x", "deleted")]),
        (f"apply_patch <<'EOF'\n{PATCH}EOF", list(PATCHED)),
        (f"cat <<'EOF' | apply_patch\n{PATCH}EOF", list(PATCHED)),
        ("timeout 5 rm a", [("a", "deleted")]),
        ("bash -lc 'rm a' > all.log", [("a", "deleted"), ("all.log", "created")]),
        ("bash -euo pipefail -c 'rm a'", [("a", "deleted")]),
        ("(cd app && rm a); rm b", [("app/a", "deleted"), ("b", "deleted")]),
        ("cd ~/app && rm a", [("~/app/a", "deleted")]),
        ("cd $APP && rm a /tmp/b && cd /srv && rm c", [("/tmp/b", "deleted"), ("/srv/c", "deleted")]),
    ],
)
def test_a_command_says_which_files_it_changes(command, changes):
    assert tuple(changes) == changes_of(command)


@pytest.mark.parametrize(
    "command",
    [
        "",
        "ls -la && cat a.txt | grep x",
        "grep '>' README.md",
        'echo "a > b" "rm c"',
        "cmd > /dev/null 2>&1",
        "[[ a > b ]] && echo y",
        "sort < in.txt <<< word",
        "rm $TMP/x; echo > ${A}.txt; rm `ls`",
        "for f in a b; do rm $f; done # rm c",
        "git log --stat | head; git status",
        "diff <(sort a) <(sort b)",
        "bash run.sh -c 'rm a'",
        f"cat > $OUT <<'EOF'\n{PATCH}EOF",
        "cd - && rm a",
    ],
)
def test_what_changes_no_file_that_can_be_named_gives_nothing(command):
    assert changes_of(command) == ()


def test_a_quote_that_is_never_closed_ends_the_reading_there():
    assert changes_of("rm a; echo 'b > c; rm d") == (("a", "deleted"),)


def test_the_same_change_is_told_once():
    assert changes_of("echo a >> log; echo b >> log") == (("log", "edited"),)


def test_a_patch_says_which_files_it_changes():
    assert changes_of_patch(PATCH) == PATCHED
    assert changes_of_patch("no patch") == ()


@given(st.text(alphabet="ab <>|&;()'\"\\\n$`#-=*EOFrmvcd./", max_size=80))
def test_any_text_is_read_without_an_error(command):
    assert all(path and change for path, change in changes_of(command))
