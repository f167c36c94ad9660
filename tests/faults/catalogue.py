"""The kinds of failure that the bench tries, and the cases of each: a test is named by the id of its kind."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parent
CASE = re.compile(r"test_((?:[a-i]\d\d_)+)\w+")

KINDS: dict[str, str] = {
    "A01": "a crash or an error between storing a message and arming its timer",
    "A02": "the answer to a write is lost and the client sends it again, once or in a storm",
    "A03": "an idempotency key with another body, or a malformed one",
    "A04": "a model call inside the request, with the provider down",
    "A05": "accepted before anything is written; a dead queue that looks healthy",
    "A06": "the same event after its project was renamed, or for another subject",
    "A07": "the time of arrival in place of the time it was said; zones, naive times",
    "A08": "a short script ends before a background thread has saved anything",
    "A09": "a batch with a bad item, sent twice, or cut by a crash",
    "A10": "5 MB, nothing, NUL, half a surrogate pair, odd Unicode",
    "B01": "a timer is claimed and its claimer dies",
    "B02": "two workers, or a timer and an end, open the same window",
    "B03": "a conversation longer than a window",
    "B04": "a compaction summary inside the next window",
    "B05": "a timer is pushed out while somebody claims it",
    "B06": "memory is off for one thread, or on for one of a project that is off",
    "B07": "what cannot be served stands before what can",
    "B08": "a conversation that never pauses",
    "B09": "the clock is set back or forward; two clocks differ; daylight saving",
    "C01": "the process dies after a claim and before the work",
    "C02": "a live job outlasts its lease",
    "C03": "an input that kills the process",
    "C04": "an outage exhausts the retries of everything that was due",
    "C05": "429, quota, and policy refusals",
    "C06": "one job raises, hangs, or is slow",
    "C07": "a final write over what was deleted or replaced meanwhile",
    "C08": "an effect is committed and its status is not",
    "C09": "a failed or empty answer counts as success",
    "C10": "a worker restarts under another name",
    "C11": "shutdown with work in hand",
    "C12": "a poison message without a cap; a request far over the limit",
    "C13": "an older window, late, overwrites what a newer one established",
    "C14": "the judge of contradictions fails",
    "C15": "a part fails and its whole never completes",
    "D01": "prose, fences, truncated JSON, one bad item",
    "D02": "fewer vectors than texts, wrong pairing, another dimension or model",
    "D03": "an enum in free words",
    "D04": "an invented quote, date or person; instructions restated; endless repetition",
    "D05": "braces in the user's text",
    "D06": "the prompt's closing fence, or orders, in the user's text",
    "D07": "recalled context is captured again",
    "D08": "memory comes back in another language",
    "E03": "what was deleted comes back, or cannot be added again",
    "F01": "quotes, operators, an empty query, 20,000 characters",
    "F02": "Chinese, Japanese, Thai, Arabic, Hindi, accents",
    "F03": "a hit by words alone, or by vectors alone, is dropped",
    "F04": "recency over relevance; the same fact nine times",
    "F05": "a limit of 0, over the store, or under one item",
    "F06": "a search right after a restart, or for what waits",
    "F07": "a question about the past",
    "G01": "two processes on one file",
    "G02": "too many parameters, a pool exhausted, deadlock",
    "G03": "a full disk, a read-only file system, power loss",
    "G04": "a migration that dies, a newer database, a backup or restore cut short",
    "G05": "a store that grows without bound",
    "G06": "a place that depends on the current directory",
    "H01": "a hook that hurts the agent, with nobody awake, a hundred at once, killed, or given nonsense",
    "H02": "each agent's strict output",
    "H03": "sessions that never end, are resumed, are told 66 times, or by two agents",
    "H04": "worktrees, clones, containers, sub-folders, renames, the same name twice, a `cd`",
    "H05": "a secret across a cut, beside CJK, or in a tool result",
    "H06": "a handoff used up by a session that did nothing, another project, or a retry; hundreds of them",
    "H07": "installing twice, foreign hooks and comments, an uninstall that leaves something",
    "I01": "what is to be told is marked delivered, and its reader dies before it has it",
    "I02": "a packet or page is cut to a limit, and the cursor moves past what was cut",
    "I03": "the end of a launch is told twice, the second time with events that the first did not carry",
    "I04": "a lease is taken over, and who held it before acts late",
    "I05": "a receiver of webhooks is down for a day, slow, fails once, rejects, or is sent to by two at once",
}


def cases() -> Iterator[tuple[str, str]]:
    """(id, name of the test) of every case, in the order of the files; a case of two kinds comes twice."""
    for file in sorted(FOLDER.glob("test_?_*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (found := CASE.fullmatch(node.name)):
                for kind in found[1].upper().split("_")[:-1]:
                    yield kind, node.name
