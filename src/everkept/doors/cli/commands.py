"""Every command of the CLI: its name, panel, one line of help, and where its code is.

Only this table is read to show `--help`; the module of a command is imported when the command runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from cyclopts import App, Group

HERE = "everkept.doors.cli"

SUMMARY = "Durable memory for AI agents: nothing lost, nothing twice, nothing hidden."
EPILOGUE = (
    "Data goes to stdout, everything else to stderr; `--json` gives the shapes of HTTP. Exit codes: 0 done (an empty "
    "result too), 1 failed, 2 usage, 3 could not look, 4 not found or conflict, 5 needs attention, 130 interrupted."
)


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    place: str
    """`module:attribute`, in this package."""
    help: str
    has_commands: bool = False


PANELS: dict[str, tuple[Command, ...]] = {
    "Use": (
        Command("add", "memory:add", "Append what was said to a thread."),
        Command("recall", "memory:recall", "Search what was said, stated and summarised."),
        Command("remember", "facts:remember", "State a durable fact by hand."),
        Command("facts", "facts:facts", "List facts with their quotes and how long they hold."),
        Command("episodes", "history:episodes", "List episodes: summaries of stretches of conversation."),
        Command("threads", "history:threads", "List conversations; show, end or set one.", has_commands=True),
        Command("timeline", "timeline:timeline", "List what happened in this folder's project, newest first."),
        Command("correct", "facts:correct", "Put one fact right; what was wrong is kept."),
        Command("pin", "facts:pin", "Keep one fact in view, or no longer."),
        Command("forget", "facts:forget", "Retire one fact; can be undone."),
        Command("erase", "removal:erase", "Destroy something and all that rests on it, for good."),
        Command("export", "removal:export", "Write all that is kept about a subject."),
        Command("import", "importing:importing", "Take in what exists: a chat export, or sessions of coding agents.",
                has_commands=True),
        Command("why", "memory:why", "Show where anything comes from: a fact, message, page, proposal …"),
    ),
    "Agents": (
        Command("install", "wiring:install", "Wire coding agents to this memory: hooks, MCP server, instructions."),
        Command("uninstall", "wiring:uninstall", "Leave the files of coding agents as they were."),
        Command("mcp", "mcp:mcp", "Serve the memory's tools to one agent over stdio (MCP)."),
        Command("sessions", "sessions:sessions", "List sessions of coding agents; show or end one.", has_commands=True),
        Command("pages", "knowledge:pages", "List pages of knowledge; show, write or delete one.", has_commands=True),
        Command("handoffs", "handoffs:handoffs", "List where sessions left off; show or take one.", has_commands=True),
        Command("accept", "accepting:accept", "Say that a session has what it was given at its start."),
        Command("run", "run:run", "Run an agent here, its sessions linked to this folder's line of work."),
        Command("continue", "continuing:continue_work", "Go on with the work done last here, with any agent."),
        Command("workstreams", "workstreams:workstreams", "List lines of work across agents; show, name or select one.",
                has_commands=True),
        Command("review", "review:review", "Review finished sessions now; list the reviews so far.", has_commands=True),
        Command("proposals", "proposals:proposals", "List proposed improvements of pages; decide, undo, measure.",
                has_commands=True),
    ),
    "Operate": (
        Command("serve", "processes:serve", "Serve HTTP, with a worker inside."),
        Command("worker", "processes:worker", "Work jobs until stopped, or until idle."),
        Command("status", "status:status", "Show health, backlog and what needs attention."),
        Command("jobs", "jobs:jobs", "List background work; retry, pause, resume or discard it.", has_commands=True),
        Command("consumers", "consumers:consumers", "List who follows the changes; replay or remove one.",
                has_commands=True),
        Command("webhooks", "webhooks:webhooks", "List webhooks; add, test, pause, resume or replay one.",
                has_commands=True),
        Command("reprocess", "removal:reprocess", "Derive memory again from events and kept replies."),
        Command("projects", "projects:projects", "List projects; create, set, rename, move or merge one.",
                has_commands=True),
        Command("keys", "projects:keys", "List, create and revoke API keys.", has_commands=True),
        Command("db", "database:db", "Check or upgrade the store's file; print its schema.", has_commands=True),
        Command("backup", "backups:back_up", "Write the whole store to one file, also while it is in use."),
        Command("restore", "backups:restore", "Put a backup in the place of the store, which is kept beside."),
        Command("move", "moving:move", "Move the memory between a file and PostgreSQL, while it is used."),
        Command("config", "settings:config", "Print each setting and where its value comes from."),
    ),
    "Prove": (
        Command("demo", "demo:demo", "Show what Everkept does, offline, in a throw-away store."),
        Command("doctor", "doctor:doctor", "Name what is wrong, why, and the command that mends it."),
        Command("torture", "torture:torture", "Kill and cut a throw-away store on this disk, and check what is left."),
    ),
}  # fmt: skip


def build_app() -> App:
    """The whole command line; nothing of it is loaded before it is called."""
    flags = Group("Flags", sort_key=len(PANELS))
    app = App(
        name="everkept", help=SUMMARY, help_epilogue=EPILOGUE, version=installed_version, help_format="plaintext",
        group_commands=flags, suppress_keyboard_interrupt=False,
    )  # fmt: skip
    for place, (panel, commands) in enumerate(PANELS.items()):
        group = Group(panel, sort_key=place)
        for order, command in enumerate(commands):
            # A group of commands brings its own settings; only a plain function takes them from here.
            plain = {} if command.has_commands else {"help_epilogue": ""}
            app.command(
                f"{HERE}.{command.place}", command.name, help=command.help, group=group, sort_key=order, **plain
            )
    return app


def installed_version() -> str:
    from importlib.metadata import version  # read only for `--version`: it costs 20 ms

    return version("everkept")
