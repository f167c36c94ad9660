"""What is planted in synthetic histories of sessions, and the red herrings beside it: data.

The first half of each pool was looked at while the reviewer was tuned, the second half was not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Correction:
    """A wish of the user, said in other words each time."""

    needle: str
    """What a rule about it must name."""
    said: tuple[str, ...]
    call: str
    """What the agent was about to run when it was put right."""
    kind: str = "rule"

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.needle,)


@dataclass(frozen=True, slots=True)
class Error:
    """An error with what mends it: a command before the one that failed, or one in its place."""

    command: str
    output: str
    how: Literal["first", "instead"]
    needle: str
    """What then works; a page about it must name it."""
    kind: str = "gotcha"

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.needle,)


@dataclass(frozen=True, slots=True)
class Procedure:
    steps: tuple[str, ...]
    kind: str = "procedure"

    @property
    def parts(self) -> tuple[str, ...]:
        """Its steps, without what is other each time."""
        return tuple(step.split("{")[0].rstrip("v ") for step in self.steps)

    @property
    def needle(self) -> str:
        return self.parts[-1]


Plant = Correction | Error | Procedure

CORRECTIONS: Final = (
    Correction(
        "pnpm",
        (
            "use pnpm, not npm",
            "No, pnpm instead of npm please",
            "please run it with pnpm rather than npm",
            "I told you: never npm. We use pnpm here, not npm!",
        ),
        "npm install",
    ),
    Correction(
        "mock",
        (
            "Don't mock the database in integration tests",
            "stop mocking the database in the tests of integration",
            "no, integration tests must not mock the database",
        ),
        "pytest tests/integration",
    ),
    Correction(
        "main",
        ("don't push to main", "never push to main directly", "No! Do not push to main."),
        "git push origin main",
    ),
    Correction(
        "pathlib",
        ("use pathlib instead of os.path", "pathlib, not os.path", "we always use pathlib rather than os.path"),
        "python fix.py",
    ),
    Correction(
        "englisch",
        (
            "Kommentare bitte immer auf Englisch, nicht auf Deutsch",
            "nein, Kommentare auf Englisch statt auf Deutsch",
            "Kommentare immer auf Englisch schreiben, nie auf Deutsch",
        ),
        "cat README.md",
    ),
    Correction(
        "console.log",
        (
            "never leave console.log in the code",
            "don't leave console.log in the code",
            "no console.log in the code please",
        ),
        "npm run dev",
    ),
    Correction(
        "generated",
        ("don't edit generated files", "never edit the generated files by hand", "stop editing generated files"),
        "sed -i s/a/b/ gen/api.ts",
    ),
    Correction(
        "next to",
        (
            "put tests next to the module, not into the tests folder",
            "colocate the tests with the module",
            "tests live next to the module instead of the tests folder",
        ),
        "touch tests/test_a.py",
    ),
    Correction(
        "squash",
        (
            "squash the commits before you merge",
            "please always squash commits before a merge",
            "you forgot to squash before merging again",
        ),
        "git merge feature",
    ),
    # ---- of histories that were not tuned on
    Correction(
        "podman",
        (
            "use podman, not docker",
            "podman instead of docker please",
            "I said podman rather than docker!",
            "never docker, always podman",
        ),
        "docker build .",
    ),
    Correction(
        "snapshot",
        (
            "don't update snapshots to make tests pass",
            "never update the snapshots just to make tests pass",
            "you must not update snapshots to make the tests pass",
        ),
        "jest -u",
    ),
    Correction(
        "migraciones",
        (
            "No toques las migraciones existentes",
            "nunca toques migraciones existentes",
            "te dije que no toques las migraciones existentes",
        ),
        "alembic revision -m x",
    ),
    Correction(
        "ruff",
        ("use ruff format instead of black", "we use ruff format, not black", "please, ruff format rather than black"),
        "black .",
    ),
    Correction(
        "ulid",
        ("必ずUUIDではなくULIDを使ってください", "UUIDじゃなくてULIDを使って", "今後はUUIDではなくULIDで"),
        "python gen.py",
    ),
    Correction(
        "linter",
        (
            "never commit without running the linter",
            "don't commit without running the linter first",
            "do not commit before running the linter",
        ),
        "git commit -m wip",
    ),
    Correction(
        "any",
        (
            "do not use `any` in TypeScript types",
            "never `any` in TypeScript types",
            "no `any` in TypeScript types, I told you",
        ),
        "tsc --noEmit",
    ),
    Correction(
        "utc",
        ("store times in UTC, never in local time", "times go into the database as UTC", "must be UTC, not local time"),
        "python seed.py",
    ),
    Correction(
        "changelog",
        (
            "always add a line to the changelog",
            "you forgot the changelog again",
            "every change needs a line in the changelog, always add one",
        ),
        "git commit -m done",
    ),
)

ERRORS: Final = (
    Error(
        "pnpm test",
        "FAIL src/{word}.test.ts\nError: connect ECONNREFUSED 127.0.0.1:{port}\n    at TCPConnectWrap",
        "first",
        "docker compose up -d db",
    ),
    Error(
        "python -m pytest tests/{word}",
        'Traceback (most recent call last):\n  File "/work/acme/tests/{word}.py", '
        "line {n}\nModuleNotFoundError: No module named 'acme'",
        "instead",
        "PYTHONPATH=src",
    ),
    Error(
        "npm run lint",
        'npm error Missing script: "lint"\nnpm error A complete log is in /root/.npm/_logs/{n}.log',
        "instead",
        "pnpm run lint",
    ),
    Error(
        "cargo build",
        "error: failed to run custom build command for `acme-proto v0.{n}.0`: Could not find `protoc`",
        "first",
        "apt-get install",
    ),
    Error(
        "git push",
        "fatal: The current branch feature-{n} has no upstream branch.",
        "instead",
        "git push -u origin HEAD",
    ),
    Error(
        "make test",
        "schema.json:{n}: error: it is out of date\nmake: *** [Makefile:{n}: test] Error 1",
        "first",
        "make schema",
    ),
    # ---- of histories that were not tuned on
    Error(
        "terraform plan", "Error: Required plugins are not installed\n  on main.tf line {n}", "first", "terraform init"
    ),
    Error(
        "pip install -e .",
        "error: externally-managed-environment\n× This environment is externally managed",
        "instead",
        "uv pip install -e .",
    ),
    Error(
        "yarn build",
        "Error: error:0308010C:digital envelope routines::unsupported\n"
        "    at new Hash (node:internal/crypto/hash:{n}:19)",
        "instead",
        "NODE_OPTIONS=--openssl-legacy-provider",
    ),
    Error("go test ./...", "internal/{word}/mock.go:{n}:2: undefined: MockStore\nFAIL", "first", "go generate ./..."),
    Error(
        "python manage.py test",
        "django.db.utils.OperationalError: no such table: shop_item",
        "first",
        "python manage.py migrate",
    ),
    Error(
        "alembic upgrade head",
        "ERROR [alembic.util.messaging] Can't locate revision identified by '{hex}'",
        "first",
        "alembic stamp head",
    ),
)

PROCEDURES: Final = (
    Procedure(("npm version {v}", "npm run build", "git push --tags", "npm publish")),
    Procedure(("make schema", "make migrate", "pytest tests/schema", "./scripts/deploy.sh staging")),
    Procedure(("docker build -t acme:{v} .", "docker push acme:{v}", "kubectl rollout restart deployment/acme")),
    Procedure(("ruff format src", "mypy src", "towncrier build --version {v}", "git tag v{v}")),
    # ---- of histories that were not tuned on
    Procedure(("cargo fmt", "cargo clippy --all-targets", "cargo test", "git tag v{v}", "cargo publish")),
    Procedure(("terraform fmt", "terraform plan -out=plan.bin", "terraform apply plan.bin", "./scripts/smoke.sh")),
    Procedure(("bundle exec rake assets:precompile", "cap production deploy", "./bin/announce {v}")),
    Procedure(("flutter pub get", "flutter build apk", "fastlane supply")),
)

ONCE_SAID: Final = (
    "no, use the blue variant not the red one",
    "don't rename the invoice column",
    "I'd rather keep the old parser here",
    "never mind the footer, don't change the header",
    "put the helper into billing instead of core",
    "let's not support Windows paths in this script",
    "stop, use the staging bucket rather than production",
    "don't add a retry to the uploader",
    "use tabs in this Makefile, not spaces",
    "keep it in one file, not two",
)
"""Each at most once in a history."""
ONCE_FAILED: Final = (
    ("npx prisma generate", "Error: P1012 schema validation", "npm install prisma"),
    ("gradle assemble", "FAILURE: Build failed with an exception: no JAVA_HOME", "sdk install java"),
    ("mix test", "** (Mix) Could not start application", "mix deps.get"),
    ("swift build", "error: no such module 'Logging'", "swift package resolve"),
    ("rake db:setup", "PG::ConnectionBad: could not connect", "brew services start postgresql"),
)
SAID_OF_ONE_PLACE: Final = (
    "don't rename the {word} column",
    "don't change the {word} export format",
    "use the new {word} endpoint, not the old one",
    "no, the {word} button should not be blue",
    "the {word} total must not be negative",
    "keep the {word} page as it is",
    "let's use {n} as the limit for {word}",
    "you should also handle an empty {word}",
    "Only show the first {n} {word} lines",
)
"""Corrections of the matter in hand, that hold nowhere else."""
TASKS: Final = (
    "Add a {word} page to the settings and wire it up, with a test for the empty case",
    "Fix the failing {word} test",
    "Refactor the {word} module so that it is easier to read and explain to me what you did and why it is better",
    "Please add tests for {word}, the ones we have only cover the happy path",
    "Why is {word} slow?",
    "Can you look into the {word} export? It sometimes gives an empty file, and users complain about it every week.",
)
GO_ON: Final = ("Run the tests", "Commit and push the changes", "looks good", "now update the docs as well", "continue")
WORDS: Final = tuple(
    "invoice order basket report ledger customer search login export import price stock shipment coupon refund tax "
    "address profile avatar catalog review rating wishlist gift voucher supplier warehouse carrier label parcel".split()
)
