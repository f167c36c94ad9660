"""What is known of programs: which only look, which answer with their exit code, which run another. Data."""

from __future__ import annotations

import re
from typing import Final

LOOKS: Final = frozenset(
    "[ [[ awk basename bat cal cat cd cmp column comm command cut date df diff dir dirname du echo egrep env exa "
    "export expr eza false fd fgrep file find grep head hexdump history hostname id jq less ls lsof man md5sum more nl "
    "nproc od pgrep printenv printf ps pwd readlink realpath rg sed sha256sum shasum sleep sort source stat strings "
    "tac tail test tr tree true type uname uniq wc whereis which who whoami xxd yq".split()
)
"""Programs that only show what is there (unless their output goes to a file)."""
_GIT_LOOKS: Final = frozenset(
    "blame branch check-ignore describe diff diff-tree grep log ls-files ls-remote ls-tree merge-base reflog remote "
    "rev-list rev-parse shortlog show show-ref status tag var whatchanged".split()
)
LOOKS_AT: Final = {
    "docker": frozenset("images inspect logs port ps stats top version".split()),
    "gh": frozenset(),
    "kubectl": frozenset("describe explain get logs top version".split()),
    "npm": frozenset("list ls outdated view".split()),
    "pip": frozenset("freeze list show".split()),
    "systemctl": frozenset("cat is-active is-enabled list-units show status".split()),
    "git": _GIT_LOOKS,
}
ANSWERS: Final = frozenset("[ [[ cmp command comm diff egrep expr fgrep grep pgrep rg test type which".split())
"""Programs whose exit code 1 is an answer: not found, not equal, not true."""
GIT_ANSWERS: Final = frozenset("check-ignore diff diff-files diff-index grep ls-files merge-base show-ref".split())

SETS: Final = frozenset("cd export pushd popd set source . sleep shopt true ulimit umask unset wait :".split())
RUNNERS: Final = (
    ("uv", "run"),
    ("poetry", "run"),
    ("pipenv", "run"),
    ("pdm", "run"),
    ("hatch", "run"),
    ("bundle", "exec"),
)
RUN_PACKAGES: Final = frozenset({"npx", "bunx", "pnpx", "uvx"})
FILTERS: Final = frozenset({"tail", "head", "tee", "cat", "less", "more", "sort", "uniq", "wc", "column"})
QUIETS: Final = {
    "pytest": re.compile(
        r"-[vqsxl]+|-r\w+|--(?:verbose|quiet|tb=\S+|no-header|color=\S+|showlocals|maxfail=\d+|durations=\d+)"
    ),
    "go": re.compile(r"-v|-count=1"),
    "cargo": re.compile(r"-v+|-q|--verbose|--quiet|--color=\S+"),
    "npm": re.compile(r"--silent|-s|--loglevel=\S+"),
    "pnpm": re.compile(r"--silent|-s"),
    "yarn": re.compile(r"--silent|-s|--verbose"),
    "jest": re.compile(r"--verbose|--silent|--colors?|--no-colors?"),
    "vitest": re.compile(r"--silent|--reporter=\S+"),
    "mypy": re.compile(r"--pretty|--no-color-output"),
    "make": re.compile(r"-s|--silent|--no-print-directory|-j\d*"),
    "mvn": re.compile(r"-q|-B|--batch-mode|--quiet"),
    "gradle": re.compile(r"-q|--quiet|--info|--console=\S+|--stacktrace"),
}  # fmt: skip
"""Arguments that change how much is shown, per program: a letter such as -v means other things elsewhere."""
