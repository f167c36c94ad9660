"""What each kind of line in a Codex rollout tells of a call: what was asked, what came of it, how it ended."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import Any, Final

from everkept.capture.agents.drafts import CallDraft, family_of, paths_in, plan_items
from everkept.capture.agents.reading import as_text
from everkept.capture.agents.records import (
    Record,
    arguments_in,
    bounded,
    exit_code_in,
    flag_in,
    load,
    record_in,
    records_in,
    text_in,
)
from everkept.domain.session import Family
from everkept.domain.shell import changes_of, changes_of_patch

Tell = Callable[[CallDraft, Record], None]

RESULTS: Final = frozenset(
    {"function_call_output", "custom_tool_call_output", "tool_result", "exec_command_end", "patch_apply_end"}
)
_EXIT_LINE = re.compile(r"^(?:Exit code: |Process exited with code )(-?\d{1,10})\s*$", re.MULTILINE)
_HEAD_LINE = re.compile(r"^(?:Wall time:? |Exit code: )|^Process (?:exited|running) with ", re.MULTILINE)
_OUTPUT_HEADING: Final = "Output:"
_HEAD_CHARS: Final = 1_000
_ID_CHARS: Final = 40
_DENIALS: Final = (
    "exec command rejected by user",
    "patch rejected by user",
    "rejected by user",
    "This action was rejected due to unacceptable risk",
    "user cancelled MCP tool call",
    "user rejected MCP tool call",
)
_SCRIPTED = re.compile(r"""tools\.exec_command\(\s*\{[^{}]{0,400}?["']?\bcmd["']?\s*:\s*("(?:[^"\\]|\\.){1,20000}")""")
"""A command in a script, as a string in double quotes."""
_ABORTED = re.compile(r"aborted\b(?: by user)?", re.IGNORECASE)
_RUNNING = re.compile(r"^Process running with session ID (\d{1,18})\s*$", re.MULTILINE)
_FAILED_PATCH: Final = ("apply_patch verification failed", "Failed to find expected lines")
_SHELLS: Final = frozenset({"bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/bin/zsh", "/usr/bin/bash", "/usr/bin/zsh"})
_CHANGE_WORDS: Final = {"add": "created", "delete": "deleted", "update": "edited"}
_ASKED_APART: Final = frozenset(
    {
        "command",
        "cmd",
        "workdir",
        "cwd",
        "timeout_ms",
        "timeout",
        "yield_time_ms",
        "max_output_tokens",
        "login",
        "shell",
    }
)


def id_of(payload: Record) -> str:
    """The id that the lines of one call share; items of a turn have it as their own."""
    return text_in(payload, "call_id", "callId", "target_item_id", "id")


def name_of(payload: Record) -> str:
    name = text_in(payload, "name") or text_in(record_in(payload, "function"), "name")
    namespace = text_in(payload, "namespace")
    if namespace.startswith("mcp__"):
        return f"{namespace.rstrip('_')}__{name}"
    return name


def command_line(value: Any) -> str:
    """A command in words: `["bash", "-lc", "ls"]` is `ls`."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return ""
    words = [word for word in value if isinstance(word, str)]
    if len(words) == 3 and words[0] in _SHELLS and words[1] in ("-lc", "-c", "-ic"):
        return words[2]
    return shlex.join(words)


def _asked(draft: CallDraft, payload: Record) -> None:
    name = name_of(payload)
    given = payload["input"] if "input" in payload else payload.get("arguments")
    arguments = arguments_in(given)
    if name == "apply_patch":
        patch = given if isinstance(given, str) and not arguments else text_in(arguments, "input", "patch")
        draft.ask(name, family="edit", changes=changes_of_patch(patch), given=patch)
    elif name == "update_plan":
        draft.items = plan_items(arguments.get("plan"))
        draft.ask(name, given=text_in(arguments, "explanation"))
    elif name == "exec" and isinstance(given, str) and not arguments:
        _asked_to_script(draft, given)
    elif command := command_line(arguments.get("command") or arguments.get("cmd")):
        _asked_to_run(draft, name, command, arguments)
    else:
        if name == "write_stdin" and "session_id" in arguments:
            draft.extra["process"] = str(arguments["session_id"])[:_ID_CHARS]
        draft.ask(name, family=family_of(name), paths=paths_in(arguments), given=arguments or given)


def _asked_to_run(draft: CallDraft, name: str, command: str, arguments: Record) -> None:
    rest = {key: value for key, value in arguments.items() if key not in _ASKED_APART}
    folder = text_in(arguments, "workdir", "cwd")
    if folder:
        draft.extra.setdefault("workdir", folder)
    changes = changes_of(command)
    family: Family = "edit" if command.lstrip().startswith("apply_patch") else "shell"
    draft.ask(name, family=family, command=command, changes=changes, given=rest)


def _asked_to_script(draft: CallDraft, script: str) -> None:
    """A script that calls tools: its commands, where they stand in it as they are; their ends are told elsewhere."""
    found = [json_text for match in _SCRIPTED.finditer(script) if (json_text := _unquoted(match[1]))]
    if found:
        command = "\n".join(found)
        draft.ask("exec", family="shell", command=command, changes=changes_of(command))
    else:
        draft.ask("exec", family="other", given=script)


def _unquoted(literal: str) -> str:
    """The text of a JSON string, empty where it is none."""
    return text_in(load(f'{{"text": {literal}}}') or {}, "text")


def _local_shell(draft: CallDraft, payload: Record) -> None:
    action = record_in(payload, "action")
    _asked_to_run(
        draft, "local_shell", command_line(action.get("command")), {"workdir": text_in(action, "working_directory")}
    )


def _answered(draft: CallDraft, payload: Record) -> None:
    output = payload.get("output", payload.get("result", payload.get("tools")))
    code = None
    if isinstance(output, dict):
        text = as_text(output) or "\n".join(t for name in ("stdout", "stderr") if (t := text_in(output, name)))
        code = exit_code_in(output, "exitCode", "exit_code")
        if (success := flag_in(output, "success")) is not None:
            draft.decide(4, "ok" if success else "failed", "success flag")
    else:
        text = as_text(output)
    if text.startswith("{") and (wrapped := load(text)) is not None and "output" in wrapped:
        text = text_in(wrapped, "output")
        code = exit_code_in(record_in(wrapped, "metadata"), "exit_code")
    draft.decide_by_code(code)
    _decide_by_words(draft, text)
    running = _RUNNING.search(text[:_HEAD_CHARS].partition(_OUTPUT_HEADING)[0])
    if running is not None and draft.name != "write_stdin":
        draft.extra["process"] = running[1]
        draft.output = draft.output or bounded(_printed(text))  # and not ended
        return
    draft.answer(_printed(text))


def _printed(text: str) -> str:
    """An output without the head that newer ones begin with."""
    head, heading, _ = text[:_HEAD_CHARS].partition(_OUTPUT_HEADING)
    if heading and _HEAD_LINE.search(head):
        return text[len(head) + len(heading) :].removeprefix("\n")
    return text


def _decide_by_words(draft: CallDraft, text: str) -> None:
    """Newer outputs begin with a head of lines that ends at `Output:`; refusals are the whole output."""
    head, heading, _ = text[:_HEAD_CHARS].partition(_OUTPUT_HEADING)
    start = text.lstrip()[:200]
    if start.startswith(_DENIALS):
        draft.decide(6, "denied", "output says it was rejected")
    elif _ABORTED.match(start):
        draft.decide(4, "interrupted", "output says it was aborted")
    elif start.startswith(_FAILED_PATCH):
        draft.decide(3, "failed", "output says the patch failed")
    elif start.startswith("Script failed"):
        draft.decide(3, "failed", "output says the script failed")
    elif heading and (found := _EXIT_LINE.search(head)):
        draft.decide_by_code(int(found[1]))
    elif start.startswith(("Success. Updated the following files",)):
        draft.decide(3, "ok", "output says the patch was applied")


def _executed(draft: CallDraft, payload: Record) -> None:
    """`exec_command_end`, or a CommandExecution item."""
    if command := command_line(payload.get("command")):
        _asked_to_run(draft, "exec_command", command, {"workdir": text_in(payload, "cwd")})
    status = text_in(payload, "status").lower()
    if status == "declined":
        draft.decide(6, "denied", "status declined")
    draft.decide_by_code(exit_code_in(payload, "exit_code"))
    output = text_in(payload, "aggregated_output", "formatted_output") or "\n".join(
        text for name in ("stdout", "stderr") if (text := text_in(payload, name))
    )
    draft.answer(output)


def _began(draft: CallDraft, payload: Record) -> None:
    if command := command_line(payload.get("command")):
        _asked_to_run(draft, "exec_command", command, {"workdir": text_in(payload, "cwd")})


def _patched(draft: CallDraft, payload: Record) -> None:
    """`patch_apply_end`, or a FileChange item."""
    changes = _changes_in(record_in(payload, "changes"))
    draft.ask("apply_patch", family="edit", changes=changes)
    draft.changed(changes)
    status = text_in(payload, "status").lower()
    success = flag_in(payload, "success")
    if status == "declined":
        draft.decide(6, "denied", "status declined")
    elif success is not None:
        draft.decide(5, "ok" if success else "failed", "patch_apply_end.success")
    elif status in ("completed", "failed"):
        draft.decide(4, "ok" if status == "completed" else "failed", "status of the patch")
    draft.answer("\n".join(text for name in ("stdout", "stderr") if (text := text_in(payload, name))))


def _patch_began(draft: CallDraft, payload: Record) -> None:
    draft.ask("apply_patch", family="edit", changes=_changes_in(record_in(payload, "changes")))


def _changes_in(changes: Record) -> tuple[tuple[str, str], ...]:
    """{path: {type, move_path}}, or {path: {"update": {…}}} of older ones."""
    found = []
    for path, told in changes.items():
        if not isinstance(told, dict):
            continue
        kind = text_in(told, "type") or next((word for word in _CHANGE_WORDS if word in told), "")
        moved = text_in(told, "move_path") or text_in(record_in(told, kind), "move_path")
        found.append((path, f"moved to {moved}" if moved else _CHANGE_WORDS.get(kind, "edited")))
    return tuple(found)


def _mcp(draft: CallDraft, payload: Record) -> None:
    """`mcp_tool_call_end` with its invocation, or an McpToolCall item."""
    asked = record_in(payload, "invocation") or payload
    draft.ask(
        f"mcp__{text_in(asked, 'server')}__{text_in(asked, 'tool')}",
        family="mcp",
        given=arguments_in(asked.get("arguments")),
    )
    if "result" not in payload and "error" not in payload:
        return
    result = payload.get("result")
    told = record_in(result, "Ok", "ok") or result if isinstance(result, dict) else {}
    error = text_in(record_in(payload, "result"), "Err", "err") or text_in(record_in(payload, "error"), "message")
    failed = bool(error) or flag_in(told, "isError") is True
    draft.decide(4, "failed" if failed else "ok", "error of the MCP call" if failed else "result of the MCP call")
    draft.answer(error or as_text(told))


def _dynamic(draft: CallDraft, payload: Record) -> None:
    draft.ask(text_in(payload, "tool"), given=arguments_in(payload.get("arguments")))
    success = flag_in(payload, "success")
    if success is not None:
        draft.decide(4, "ok" if success else "failed", "success flag")
        draft.answer(as_text(records_in(payload, "content_items")) or text_in(payload, "error"))


def _web(draft: CallDraft, payload: Record) -> None:
    action = record_in(payload, "action")
    asked = text_in(payload, "query") or text_in(action, "query", "url", "pattern") or as_text(action.get("queries"))
    draft.ask("web_search" if action or "query" in payload else text_in(payload, "kind"), family="web", given=asked)
    found = [f"{text_in(r, 'title')} {text_in(r, 'url')}".strip() for r in records_in(payload, "results")]
    if text_in(payload, "status") == "completed" or found or "results" in payload:
        draft.decide(2, "ok", "status completed")
        draft.answer("\n".join(line for line in found if line))


def _image(draft: CallDraft, payload: Record) -> None:
    """The picture itself is not kept."""
    draft.ask("image_generation", given=text_in(payload, "revised_prompt"))
    draft.answer(text_in(payload, "saved_path"))
    if (status := text_in(payload, "status")) in ("completed", "failed"):
        draft.decide(2, "ok" if status == "completed" else "failed", f"status {status}")


def _seen(draft: CallDraft, payload: Record) -> None:
    draft.ask("view_image", family="read", paths=paths_in(payload))
    draft.answer()


def _tool_search(draft: CallDraft, payload: Record) -> None:
    draft.ask("tool_search", family="other", given=payload.get("arguments"))
    if "tools" in payload:
        draft.answer(", ".join(name for tool in records_in(payload, "tools") if (name := text_in(tool, "name"))))
        draft.decide(2, "ok", "status completed")


def _collaborated(draft: CallDraft, payload: Record) -> None:
    """Calls that start, ask, await and close sub-agents."""
    draft.ask("agent", family="task", given=text_in(payload, "prompt"))
    status = payload.get("status")
    failure = text_in(record_in(payload, "status"), "errored")
    if failure or status in ("errored", "not_found"):
        draft.decide(2, "failed", "status of the sub-agent")
    answers = [record_in(row, "status") for row in records_in(payload, "agent_statuses")] + [
        record_in(payload, "status")
    ]
    draft.answer("\n".join(text for answer in answers if (text := text_in(answer, "completed", "errored"))))


def _judged(draft: CallDraft, payload: Record) -> None:
    """A reviewer of requests refused the call."""
    draft.decide(6, "denied", "the guardian denied it")
    draft.answer(text_in(payload, "rationale"))


PARTS: Final[dict[str, Tell]] = {
    "function_call": _asked,
    "custom_tool_call": _asked,
    "tool_call": _asked,
    "local_shell_call": _local_shell,
    "function_call_output": _answered,
    "custom_tool_call_output": _answered,
    "tool_result": _answered,
    "exec_command_begin": _began,
    "exec_command_end": _executed,
    "CommandExecution": _executed,
    "patch_apply_begin": _patch_began,
    "patch_apply_end": _patched,
    "FileChange": _patched,
    "mcp_tool_call_begin": _mcp,
    "mcp_tool_call_end": _mcp,
    "McpToolCall": _mcp,
    "dynamic_tool_call_request": _dynamic,
    "dynamic_tool_call_response": _dynamic,
    "DynamicToolCall": _dynamic,
    "web_search_call": _web,
    "web_search_end": _web,
    "WebSearch": _web,
    "Extension": _web,
    "image_generation_call": _image,
    "image_generation_end": _image,
    "ImageGeneration": _image,
    "view_image_tool_call": _seen,
    "ImageView": _seen,
    "tool_search_call": _tool_search,
    "tool_search_output": _tool_search,
    "collab_agent_spawn_end": _collaborated,
    "collab_agent_interaction_end": _collaborated,
    "collab_waiting_end": _collaborated,
    "collab_close_end": _collaborated,
    "CollabAgentToolCall": _collaborated,
    "guardian_assessment": _judged,
}
"""{type of a line, an item or a turn's item: what it tells of its call}"""
