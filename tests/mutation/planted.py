"""The planted bugs, as data: what is broken, which guarantee that voids, and which layer of the proof must see it."""

from __future__ import annotations

from tests.mutation.bug import Planted
from tests.mutation.planted_deliveries import DELIVERING

API = "tests/contract/test_review_api.py::"
APPEND = "tests/contract/engine/test_append.py::"
ASIDE = "tests/contract/test_aside.py::"
AUTHORITY = "tests/contract/test_authority.py::"
CLAIM = "tests/contract/engine/test_claim.py::"
DELETED_PAGES = "tests/contract/test_deleted_pages.py::"
DISTIL = "tests/contract/test_distil.py::"
DISTILLED = "tests/unit/domain/test_distilled.py::"
CONSUMERS = "tests/contract/engine/test_consumers.py::"
EMBEDDING = "tests/contract/engine/test_embedding.py::"
ENDED = "tests/contract/engine/test_ended_sessions.py::"
ERASE = "tests/contract/test_erase.py::"
FACTS = "tests/contract/engine/test_facts.py::"
FAIRNESS = "tests/contract/engine/test_fairness.py::"
FINDINGS = "tests/contract/engine/test_review_findings.py::"
HANDLES = "tests/contract/test_merged_handles.py::"
JOURNAL = "tests/contract/engine/test_journal.py::"
LEASES = "tests/contract/engine/test_leases.py::"
OUTCOMES = "tests/contract/engine/test_outcomes.py::"
PRESENCE = "tests/unit/work/test_presence.py::"
RECEIPTS = "tests/contract/test_receipts.py::"
SCHEDULE = "tests/contract/engine/test_schedule.py::"
SEARCH = "tests/contract/test_search.py::"
SESSIONS = "tests/contract/test_sessions.py::"
SIDE_BY_SIDE = "tests/contract/engine/test_side_by_side.py::"
STATUS = "tests/contract/test_status.py::"
SWEEPS = "tests/contract/engine/test_sweeps.py::"
TIMELINE = "tests/unit/domain/test_timeline.py::"
TIMERS = "tests/contract/engine/test_timers.py::"
WEATHER = "tests/contract/test_weather.py::"
WRITER = "tests/contract/engine/test_writer.py::"

FAULT_CLAIMS = "tests/faults/test_c_claims.py::"
FAULT_REPLIES = "tests/faults/test_d_replies.py::"
KILL = "tests/mutation/layer_kill.py::"
MODEL = "tests/crash/model/test_model.py::test_a_hard_case_holds"
POWER = "tests/mutation/layer_power.py::"
COMMIT_BETWEEN = "[conn.raw.execute(sql) for sql in ('commit', 'begin immediate', 'savepoint call')]"
"""Ends the transaction of a store function in its middle, and goes on in another one."""

ACCEPTING = (
    Planted(
        name="results are answered before the commit", guarantee="G1", layer="contract", file="store/writer.py",
        old='        raw.execute("commit")\n        self._transactions.committed()\n',
        new='        _answer(calls)\n        calls[:] = []\n        raw.execute("commit")\n'
            '        self._transactions.committed()\n',
        tests=(WRITER + "test_no_result_leaves_before_commit_has_returned",),
    ),
    Planted(
        name="a lost transaction is not noticed after a full disk", guarantee="G1", layer="contract",
        file="store/writer.py",
        old="            if not self._transactions.is_open(raw):\n                return False\n", new="",
        tests=(WRITER + "test_a_transaction_lost_with_a_statement_runs_each_call_alone",),
        fails_with=("AssertionError", "Failed", "StoreUnavailable"),
    ),
    Planted(
        name="an effect of a rolled back call runs all the same", guarantee="G1", layer="contract",
        file="store/writer.py",
        old="            connection.forget_effects(mark)\n", new="",
        tests=(WRITER + "test_effects_of_what_was_rolled_back_never_run",),
    ),
    Planted(
        name="the timer is armed in another transaction than the event", guarantee="G1", layer="kill",
        file="store/streams.py",
        old="        schedule(conn, wishes)\n", new=f"        {COMMIT_BETWEEN}\n        schedule(conn, wishes)\n",
        tests=(KILL + "test_kill[append]",),
    ),
    Planted(
        name="NORMAL for FULL", guarantee="G1", layer="power", file="store/sqlite.py",
        old='raw.execute("pragma synchronous = full")', new='raw.execute("pragma synchronous = normal")',
        tests=(POWER + "test_power_cut[1]",),
    ),
    Planted(
        name="the disk is never waited for", guarantee="G1", layer="power", file="store/sqlite.py",
        old='raw.execute("pragma synchronous = full")', new='raw.execute("pragma synchronous = off")',
        tests=(POWER + "test_power_cut[1]",),
    ),
    Planted(
        name="a key is known again whatever the payload", guarantee="G2", layer="model", file="store/streams.py",
        old="if payload is not None and payload != message.payload_hash:", new="if payload is None:",
        tests=(MODEL + "[keys_and_strangers]",),
    ),
    Planted(
        name="a replay is answered with another receipt than the first", guarantee="G2", layer="contract",
        file="store/streams.py",
        old="        return found[0]._replace(replayed=True)\n",
        new="        return found[0]._replace(replayed=True, recorded_at=now)\n",
        tests=(APPEND + "test_a_replay_is_answered_with_the_first_receipt_and_changes_nothing",),
    ),
    Planted(
        name="a receipt says remembered where one stage failed", guarantee="G3", layer="contract",
        file="store/receipts.py",
        old='if summary.state == facts.state == "completed":', new='if "completed" in (summary.state, facts.state):',
        tests=(RECEIPTS + "test_a_failed_stage_says_how_often_and_when_it_is_tried_next",
               RECEIPTS + "test_a_dead_stage_names_the_command_that_retries_it"),
    ),
    Planted(
        name="the slice that came furthest speaks for all", guarantee="G3", layer="faults", file="store/windows.py",
        old="worst = min(shown, key", new="worst = max(shown, key",
        tests=(FAULT_CLAIMS + "test_c15_one_slice_that_fails_leaves_the_others_and_a_hand_completes_the_whole",),
    ),
    Planted(
        name="a dead timer looks like one that waits", guarantee="G3", layer="contract", file="store/receipts.py",
        old='    if stream.state == "dead":\n', new='    if stream.state == "given up":\n',
        tests=(RECEIPTS + "test_a_dead_timer_is_a_failure_of_its_messages",),
    ),
    Planted(
        name="text is indexed only once a model has run", guarantee="G4", layer="contract", file="store/streams.py",
        old="    index_passages(conn, rows.passages)  # first: it reads\n", new="",
        tests=(APPEND + "test_an_append_is_event_passage_timer_and_change_in_one_transaction",),
    ),
    Planted(
        name="text is indexed in another transaction than it is accepted", guarantee="G4", layer="kill",
        file="store/streams.py",
        old="    index_passages(conn, rows.passages)  # first: it reads\n",
        new=f"    index_passages(conn, rows.passages)\n    {COMMIT_BETWEEN}\n",
        tests=(KILL + "test_kill[append]",),
    ),
    Planted(
        name="a window begins at the event that ended the one before", guarantee="G5", layer="contract",
        file="domain/windows.py",
        old="            windows.append((start, seq))\n            start, used = seq + 1, 0\n",
        new="            windows.append((start, seq))\n            start, used = seq, 0\n",
        tests=(TIMERS + "test_a_thousand_messages_at_once_are_all_covered",),
    ),
    Planted(
        name="a window takes one event more than it may", guarantee="G5", layer="contract", file="domain/windows.py",
        old="if seq - start + 1 >= rules.events_max or", new="if seq - start >= rules.events_max or",
        tests=(TIMERS + "test_a_thousand_messages_at_once_are_all_covered",),
    ),
    Planted(
        name="a window is opened in another transaction than its jobs", guarantee="G5", layer="kill",
        file="store/windows.py",
        old="    schedule(conn, jobs)\n    record_changes(conn, stream.project, changes)\n",
        new=f"    {COMMIT_BETWEEN}\n    schedule(conn, jobs)\n    record_changes(conn, stream.project, changes)\n",
        tests=(KILL + "test_kill[timer]",),
    ),
    Planted(
        name="an extractor is shown what is no evidence", guarantee="G5", layer="contract", file="derive/tools.py",
        old="evidence=e.evidence == EVIDENCE, tokens", new="evidence=True, tokens",
        tests=(FACTS + "test_what_is_no_evidence_lies_in_the_window_and_in_no_question",),
    ),
    Planted(
        name="a message during the timer's run does not arm it again", guarantee="G5", layer="contract",
        file="store/leases.py",
        old="    again = generation != lease.generation\n", new="    again = False\n",
        tests=(SCHEDULE + "test_a_job_scheduled_again_while_it_runs_is_armed_again_by_its_finish",),
    ),
)  # fmt: skip

WORKING = (
    Planted(
        name="the fence is not checked", guarantee="G6", layer="model", file="store/leases.py",
        old="where id = :id and fence = :fence and state = 'leased' and lease_until > :now",
        new="where id = :id and :fence = :fence and state = 'leased' and lease_until > :now",
        tests=(MODEL + "[frozen_beside_the_new_holder]",),
    ),
    Planted(
        name="a lease that has ended may still write", guarantee="G6", layer="contract", file="store/leases.py",
        old="where id = :id and fence = :fence and state = 'leased' and lease_until > :now",
        new="where id = :id and fence = :fence and state = 'leased' and lease_until > :now - lease_until",
        tests=(LEASES + "test_the_effect_of_a_late_finish_is_rolled_back_with_it_and_counted",),
    ),
    Planted(
        name="a heartbeat brings an ended lease back", guarantee="G6", layer="contract", file="store/leases.py",
        old="where owner = :owner and state = 'leased' and lease_until > :now\n",
        new="where owner = :owner and state = 'leased' and :now = :now\n",
        tests=(LEASES + "test_a_heartbeat_never_extends_a_lease_that_has_ended",),
    ),
    Planted(
        name="the finish is another transaction than the effect", guarantee="G6", layer="contract", file="work/job.py",
        old="        await self.store.write(self._commit, effect, args)\n",
        new="        result = await self.store.write(effect, *args)\n"
            "        await self.store.write(self._commit, lambda _conn: result, ())\n",
        tests=(LEASES + "test_the_effect_of_a_late_finish_is_rolled_back_with_it_and_counted",),
    ),
    Planted(
        name="a run goes on whose job this worker was given anew", guarantee="G6", layer="contract",
        file="work/runner.py",
        old="            self._running[lease.job][1].cancel()\n", new="            pass\n",
        tests=(LEASES + "test_a_run_whose_job_this_worker_was_given_anew_is_cancelled_and_the_new_one_renewed",),
    ),
    Planted(
        name="the end of an earlier run forgets the one that took its place", guarantee="G6", layer="contract",
        file="work/runner.py",
        old="if lease.job in self._running and self._running[lease.job][0] is lease:",
        new="if lease.job in self._running:",
        tests=(LEASES + "test_a_run_whose_job_this_worker_was_given_anew_is_cancelled_and_the_new_one_renewed",),
    ),
    Planted(
        name="a frozen writer keeps its locks", guarantee="G13", layer="contract", file="store/postgres.py",
        old="    if within_s is not None:\n        # From", new="    if within_s == 0:\n        # From",
        tests=(ENDED + "test_a_process_that_stood_still_while_it_wrote_is_told_so_and_goes_on",),
    ),
    Planted(
        name="a worker that stands still is taken for dead", guarantee="G6", layer="contract", file="work/presence.py",
        old='return try_lock(file) and os.read(file, 100).decode(errors="replace") ==',
        new='return os.read(file, 100).decode(errors="replace") ==',
        tests=(PRESENCE + "test_a_worker_is_dead_once_its_process_was_killed_and_not_while_it_stands_still",),
    ),
    Planted(
        name="the subject's revision is not checked", guarantee="G6", layer="contract", file="store/facts.py",
        old="if of.revision is not None and subject_revision(conn, of.subject) != of.revision:",
        new="if of.revision is not None and subject_revision(conn, of.subject) < of.revision:",
        tests=(FACTS + "test_facts_made_from_a_subject_that_moved_are_not_written",),
    ),
    Planted(
        name="a crash is booked at the finish and not at the claim", guarantee="G7", layer="model",
        file="store/claims.py",
        old="fence = fence + 1, crashes = crashes + 1,\n  leased_generation",
        new="fence = fence + 1,\n  leased_generation",
        tests=(MODEL + "[dies_until_it_is_dead]",),
    ),
    Planted(
        name="a job whose worker died is not taken back", guarantee="G7", layer="contract", file="store/leases.py",
        old="where state = 'leased' and (lease_until <= :now or exists (\n",
        new="where state = 'leased' and :now < 0 and (lease_until <= :now or exists (\n",
        tests=(LEASES + "test_an_expired_lease_is_taken_back_and_the_job_runs_again",),
    ),
    Planted(
        name="an input that kills is taken beside others", guarantee="G7", layer="contract", file="store/claims.py",
        old="        if alone and not (request.idle and not leases):\n            return Claimed(leases, drain=True)\n",
        new="",
        tests=(CLAIM + "test_a_job_whose_worker_died_is_not_taken_beside_others_of_the_same_claim",),
    ),
    Planted(
        name="a bad key spends attempts", guarantee="G7", layer="contract", file="domain/jobs.py",
        old='"rate_limited", "provider_down", "over_budget"', new='"rate_limited", "over_budget"',
        tests=(OUTCOMES + "test_the_class_of_an_error_decides_what_becomes_of_the_job",),
    ),
    Planted(
        name="Retry-After is not heard", guarantee="G7", layer="contract", file="store/providers.py",
        old=" if retry_after_s is None else max(retry_after_s, min(PROBE_MAX_S, growth))\n",
        new="\n",
        tests=(OUTCOMES + "test_retry_after_is_honoured_for_the_whole_pool",),
    ),
    Planted(
        name="a reply is thrown away when the lease was lost", guarantee="G8", layer="contract",
        file="store/journal.py",
        old='    + " and ask = :ask and text is null"\n)\n_TEXT', new='    + " and ask = :ask"\n)\n_TEXT',
        tests=(JOURNAL + "test_the_first_committed_reply_to_a_question_wins",),
    ),
    Planted(
        name="a paid reply is lost to how its text reads", guarantee="G8", layer="faults", file="models/journaled.py",
        old="text=_UNSTORABLE.sub(\"\\ufffd\", text)", new="text=text",
        tests=(FAULT_REPLIES + "test_d01_a_paid_reply_is_kept_however_it_and_its_bill_read",),
    ),
    Planted(
        name="a rejected reply is not read again by a newer parser", guarantee="G8", layer="contract",
        file="models/journaled.py",
        old="if k.ask > fresh]", new="if k.ask > fresh and k.rejected_because is None]",
        tests=(JOURNAL + "test_a_newer_parser_reads_the_kept_replies_first",),
    ),
    Planted(
        name="a question is paid for whose reply came meanwhile", guarantee="G8", layer="contract",
        file="store/journal.py",
        old="    if reply is not None:\n        return str(reply)\n", new="",
        tests=(JOURNAL + "test_a_reply_that_comes_between_looking_and_asking_is_used_and_not_paid_for_again",),
    ),
    Planted(
        name="what was discarded is counted as what it was", guarantee="G13", layer="contract",
        file="store/jobs_by_hand.py",
        old="project_id = :project\nfor no key update", new="project_id = :project",
        tests=(
            SIDE_BY_SIDE
            + "test_what_is_discarded_while_somebody_looks_for_work_is_counted_as_what_it_became",
        ),
    ),
    Planted(
        name="a question is paid for without end", guarantee="G8", layer="contract", file="models/journaled.py",
        old="if len(kept) >= self._asks_max * budget:", new="if len(kept) > self._asks_max * budget:",
        tests=(JOURNAL + "test_at_most_asks_max_replies_are_paid_for",),
    ),
    Planted(
        name="an embedding is addressed by its batch", guarantee="G8", layer="contract",
        file="derive/embed_passages.py",
        old="hashes = {text: hashlib.blake2b(text.encode(), digest_size=16)",
        new="hashes = {text: hashlib.blake2b(repr((texts, text)).encode(), digest_size=16)",
        tests=(EMBEDDING + "test_a_text_is_embedded_once_whatever_is_embedded_beside_it",),
    ),
    Planted(
        name="what wins is what was worked last", guarantee="G9", layer="model", file="domain/timeline.py",
        old="        return (self.said_us, self.stream, self.seq, self.draft)\n",
        new="        return (self.id, self.stream, self.seq, self.draft)\n",
        tests=(MODEL + "[late_window_of_early_words]",),
    ),
    Planted(
        name="a judge who gave up never judges again", guarantee="G9", layer="faults", file="store/facts.py",
        old="        rearm_dead=True,\n    )  # fmt: skip\n", new="    )  # fmt: skip\n",
        tests=(FAULT_CLAIMS + "test_c14_a_judge_who_gave_up_is_dead_in_sight_and_a_new_contradiction_starts_it_again",),
    ),
    Planted(
        name="two jobs write the facts of one subject at a time", guarantee="G9", layer="contract",
        file="store/claims.py",
        old="  where not exists (select 1 from jobs o where o.serial_key = k.serial_key and o.state = 'leased'))\n",
        new="  where k.serial_key is not null)\n",
        tests=(CLAIM + "test_claim_leases_one_job_per_serial_key",),
        fails_with=("AssertionError", "IntegrityError"),
    ),
    Planted(
        name="a lane is not charged for its service", guarantee="G13", layer="contract", file="store/claims.py",
        old="ready_{use} = ready_{use} - 1, served = :s + (",
        new="ready_{use} = ready_{use} - 1, served = 0 * :s + (",
        tests=(FAIRNESS + "test_the_charge_of_a_claim_is_corrected_to_what_was_used",),
    ),
    Planted(
        name="a lane takes the last slot", guarantee="G13", layer="contract", file="store/claims.py",
        old="    cap = max(1, request.slots - 1)\n", new="    cap = max(1, request.slots)\n",
        tests=(CLAIM + "test_a_lane_holds_all_slots_but_one",),
    ),
    Planted(
        name="turns are saved up while a lane is idle", guarantee="G13", layer="contract", file="store/lanes.py",
        old="    if n > 0 and not lane_busy:\n        conn.run(_LANE_WAKES, {\"lane\": lane})\n", new="",
        tests=(FAIRNESS + "test_a_lane_that_wakes_stands_where_the_others_stand",),
    ),
)  # fmt: skip

REMEMBERING = (
    Planted(
        name="the journal takes a reply that saw what was erased", guarantee="G10", layer="contract",
        file="store/journal.py",
        old='    """Checks the erasure epoch and no lease: whoever paid may keep what was paid for."""\n'
            "    _require_epoch(conn, address)\n",
        new="",
        tests=(JOURNAL + "test_an_erase_meanwhile_refuses_the_reply",),
    ),
    Planted(
        name="an erase hides in another transaction than it schedules its job", guarantee="G10", layer="kill",
        file="store/erase.py",
        old="    schedule(conn, [Schedule(\n        kind=ERASE",
        new=f"    {COMMIT_BETWEEN}\n    schedule(conn, [Schedule(\n        kind=ERASE",
        tests=(KILL + "test_kill[erase-thread]",),
    ),
    Planted(
        name="an erase leaves the journaled replies", guarantee="G10", layer="contract", file="store/destroy.py",
        old='    "event": (reviews, launch_work, agent_work, facts, replies),\n',
        new='    "event": (reviews, launch_work, agent_work, facts),\n',
        tests=(ERASE + "test_erasing_an_event_takes_the_replies_that_saw_it_and_derives_its_window_again",),
    ),
    Planted(
        name="an erase leaves words in the full-text index", guarantee="G10", layer="contract", file="store/search.py",
        old="    full_text(conn).delete(conn, ids)\n    conn.run(_DELETE_PASSAGES", new="    conn.run(_DELETE_PASSAGES",
        tests=(ERASE + "test_no_word_of_many_stays_in_the_full_text_index",),
    ),
    Planted(
        name="an erase leaves vectors", guarantee="G10", layer="contract", file="store/search.py",
        old="    conn.run(_DELETE_VECTORS, stale)\n", new="",
        tests=(SEARCH + "test_vectors_that_rest_on_a_deleted_turn_go_with_it",),
    ),
    Planted(
        name="a job in flight writes an erased event back", guarantee="G10", layer="contract", file="store/erase.py",
        old="    conn.run(RAISE_EPOCH, {\"subject\": subject})\n    _break_leases(conn, Piece(kind=\"event\"",
        new="    _break_leases(conn, Piece(kind=\"event\"",
        tests=(ERASE + "test_work_in_flight_cannot_write_an_erased_event_back",),
    ),
    Planted(
        name="an erased fact is shown until its job has run", guarantee="G10", layer="contract", file="store/hidden.py",
        old="  or (x.kind = 'stream' and (x.stream_id = p.stream_id\n",
        new="  or (x.kind = 'streams' and (x.stream_id = p.stream_id\n",
        tests=(ERASE + "test_an_erased_thread_is_gone_and_its_subject_stays",),
    ),
    Planted(
        name="a cursor moves back", guarantee="G11", layer="contract", file="store/changes.py",
        old="and name = :name and cursor < :upto\n", new="and name = :name and cursor <> :upto\n",
        tests=(CONSUMERS + "test_a_cursor_moves_forward_only_and_not_past_the_newest_change",),
    ),
    Planted(
        name="a cursor moves when changes are read", guarantee="G11", layer="contract", file="store/changes.py",
        old="update consumers set owner = :owner, lease_until = :until, fence = fence + 1,\n",
        new="update consumers set owner = :owner, lease_until = :until, fence = fence + 1,\n"
            "  cursor = (select change_seq from projects where id = :project),\n",
        tests=(CONSUMERS + "test_one_holder_at_a_time_and_a_late_one_moves_nothing",),
    ),
    Planted(
        name="a consumer that lost its lease moves the cursor", guarantee="G11", layer="contract",
        file="store/changes.py",
        old="  and (:fence is null or (fence = :fence and lease_until > :now))",
        new="  and (:fence is null or :now > 0)",
        tests=(CONSUMERS + "test_one_holder_at_a_time_and_a_late_one_moves_nothing",),
    ),
    Planted(
        name="the sequence of changes has gaps", guarantee="G11", layer="contract", file="store/changes.py",
        old="    first = last - len(changes) + 1\n", new="    first = last * 2 - len(changes) + 1\n",
        tests=(CONSUMERS + "test_changes_are_numbered_without_a_gap_and_reading_moves_nothing",),
        fails_with=("AssertionError", "CursorExpired"),
    ),
    Planted(
        name="changes are pruned from the middle", guarantee="G11", layer="contract", file="store/changes.py",
        old="past = [seq for seq, _ in takewhile(lambda row: row[1] < before, oldest)]",
        new="past = [seq for seq, at in oldest if at < before]",
        tests=(FINDINGS + "test_changes_are_pruned_from_the_front_alone_though_the_clock_was_set_back",),
    ),
    Planted(
        name="a window that is worked twice has its facts twice", guarantee="G12", layer="contract",
        file="store/facts.py",
        old='    return f"{of.window}.{of.slice}:{digest}"\n',
        new='    return f"{of.revision}.{of.window}.{of.slice}:{digest}"\n',
        tests=(WEATHER + "test_deriving_again_uses_the_journal_and_doubles_nothing",),
    ),
    Planted(
        name="a job that was scheduled again is no new generation", guarantee="G12", layer="contract",
        file="store/jobs.py",
        old="  generation = jobs.generation + 1,\n", new="  generation = jobs.generation,\n",
        tests=(SCHEDULE + "test_a_job_scheduled_again_while_it_runs_is_armed_again_by_its_finish",),
    ),
    Planted(
        name="a dead stage is not shown as failed", guarantee="G14", layer="contract", file="store/windows.py",
        old='    "dead": "dead",\n', new='    "dead": "pending",\n',
        tests=(RECEIPTS + "test_a_dead_stage_names_the_command_that_retries_it",),
    ),
    Planted(
        name="a search leaves its subject", guarantee="G15", layer="contract", file="api/base.py",
        old="subject=None if found is None else SubjectId(found), stream=stream)",
        new="subject=None, stream=stream)",
        tests=(API + "test_a_search_keeps_to_its_subject",),
    ),
    Planted(
        name="a list leaves its subject", guarantee="G15", layer="contract", file="store/facts.py",
        old='_FACT_COLUMNS + "where +f.project_id = :project and f.subject_id = :subject and f.id < :before"',
        new='_FACT_COLUMNS + "where +f.project_id = :project and :subject = :subject and f.id < :before"',
        tests=(API + "test_lists_of_each_scope",),
    ),
    Planted(
        name="two subjects share what they speak of", guarantee="G15", layer="contract", file="store/facts.py",
        old="select entity_id from entity_aliases where subject_id = :subject and norm = :norm",
        new="select entity_id from entity_aliases where :subject = :subject and norm = :norm",
        tests=(FACTS + "test_two_subjects_speak_of_things_of_their_own",),
    ),
    Planted(
        name="a hand reaches into another project", guarantee="G15", layer="contract", file="store/jobs_by_hand.py",
        old="from jobs where id = :id and project_id = :project\nfor no key",
        new="from jobs where id = :id and :project = :project\nfor no key",
        tests=(LEASES + "test_release_by_hand_ends_a_lease_now_and_refuses_its_holder",),
    ),
    Planted(
        name="what was forgotten is believed when it is derived again", guarantee="G9", layer="model",
        file="store/destroy.py",
        old="        mark_forgotten(conn, piece.project, ids, erased=(piece.stream, piece.seq))\n",
        new="        pass\n",
        tests=(MODEL + "[derived_again_beside_what_was_forgotten]",),
    ),
    Planted(
        name="deriving again pays for every reply again", guarantee="G16", layer="contract", file="store/reprocess.py",
        old="                if selection.fresh\n                else {}\n", new="",
        tests=(WEATHER + "test_deriving_again_uses_the_journal_and_doubles_nothing",),
    ),
    Planted(
        name="a poorer telling takes the place of a richer one", guarantee="G2", layer="contract",
        file="store/sessions.py",
        old="    return event.rank > known.rank or (event.rank == known.rank and event.source == \"transcript\")\n",
        new="    return True\n",
        tests=(SESSIONS + "test_a_transcript_completes_a_call_that_a_hook_announced",),
    ),
    Planted(
        name="a prompt that two sources tell is two", guarantee="G2", layer="contract", file="store/sessions.py",
        old="        same = self.known.get(event.key_hash) or self._told_before(event)\n",
        new="        same = self.known.get(event.key_hash)\n",
        tests=(SESSIONS + "test_a_prompt_told_by_hook_and_transcript_is_one",),
    ),
    Planted(
        name="a session that did nothing uses a handoff up", guarantee="G11", layer="contract", file="store/offers.py",
        old="        if prompt is None or conn.first(_WORKED, {\"stream\": stream, \"seq\": prompt}) is None:\n",
        new="        if seq is None:\n",
        tests=(SESSIONS + "test_an_offer_is_taken_up_by_work_and_by_nothing_else",),
    ),
    Planted(
        name="a deleted page is written again by the next digest", guarantee="G10", layer="contract",
        file="store/pages.py",
        old="    if new.author in BY_ITSELF and _stays_deleted(conn, new, there):\n        return None\n", new="",
        tests=(SESSIONS + "test_e03_what_a_person_deleted_is_not_written_again_by_itself",),
    ),
    Planted(
        name="a deleted page is written again after an erase", guarantee="G10", layer="contract",
        file="store/pages.py",
        old="    return was_deleted(conn, new.project, new.slug) if there is None else there.deleted_at is not None\n",
        new="    return there is not None and there.deleted_at is not None\n",
        tests=(DELETED_PAGES + "test_e03_a_deleted_page_without_a_source_is_not_written_again_after_an_erase",),
    ),
    Planted(
        name="what a deleted page superseded stays hidden", guarantee="G14", layer="contract",
        file="store/pages.py",
        old="select g.superseded_by from pages g where g.id = :id), updated_at",
        new="select g.id from pages g where g.id = :id), updated_at",
        tests=(DELETED_PAGES + "test_what_a_deleted_page_had_superseded_is_current_again",),
    ),
    Planted(
        name="a record is condemned for what the machine could not do", guarantee="G14", layer="contract",
        file="api/draining.py", old="        if is_of_machine(error):\n", new="        if not is_of_machine(error):\n",
        tests=(ASIDE + "test_a_record_that_names_what_cannot_be_is_set_aside_and_does_not_wait",),
    ),
    Planted(
        name="logs with the same words drown what somebody keeps true", guarantee="G4", layer="contract",
        file="recall/search.py", old='        features["maintained"] = lifts(question, window, frequencies, scores)\n',
        new='        features["maintained"] = 0 * scores\n',
        tests=(AUTHORITY + "test_f04_a_decision_is_found_before_300_outputs_of_tools_with_the_same_words",),
    ),
    Planted(
        name="a digest that did not change is numbered again", guarantee="G12", layer="contract",
        file="store/digests.py", old="    changed = session.digest_hash != new.hash\n", new="    changed = True\n",
        tests=(SESSIONS + "test_a_digest_of_the_same_content_takes_no_number",),
    ),
    Planted(
        name="an erase leaves the other tellings of an event", guarantee="G10", layer="contract", file="store/erase.py",
        old="        ahead += [n for n in near if n not in found]\n", new="",
        tests=(SESSIONS + "test_an_erased_event_takes_its_other_tellings_with_it",),
    ),
    Planted(
        name="a statement of a page needs no words of its session", guarantee="G16", layer="contract",
        file="domain/distilled.py",
        old="if voice in voices and quote in text), None)", new="if voice in voices), None)",
        tests=(DISTILLED + "test_a_statement_whose_quote_is_not_in_one_event_is_dropped",),
    ),
    Planted(
        name="a page names what its session never had", guarantee="G16", layer="contract", file="domain/distilled.py",
        old="    return (0, f\"{sort} in it does not occur in the session\") if sort else (seq, None)\n",
        new="    return seq, None\n",
        tests=(DISTIL + "test_what_the_session_does_not_bear_out_is_dropped_and_the_reason_kept",),
    ),
    Planted(
        name="a file that an agent read makes a rule", guarantee="G16", layer="contract", file="domain/distilled.py",
        old="    \"rule\": frozenset({\"user\"}),\n", new="",
        tests=(DISTILLED + "test_a_rule_is_made_of_a_persons_words_alone",),
    ),
    Planted(
        name="a page is written of what was erased meanwhile", guarantee="G10", layer="contract",
        file="store/distilled.py",
        old="    if subject_epoch(conn, new.subject) != new.epoch:\n", new="    if new.epoch < 0:\n",
        tests=(DISTIL + "test_pages_made_of_what_was_read_before_an_erase_are_refused",),
    ),
    Planted(
        name="a page that a person wrote into meanwhile costs its job an attempt", guarantee="G6", layer="contract",
        file="store/distilled.py",
        old="there.version != page.base):\n", new="there.version < 0):\n",
        tests=(DISTIL + "test_a_page_that_changed_while_the_model_answered_is_read_again_and_nothing_is_paid_twice",),
    ),
    Planted(
        name="who had opened a merged project is answered as if it were there", guarantee="G12", layer="contract",
        file="api/base.py", old="            require_unmerged(conn, self._project_id)\n            return act(",
        new="            return act(",
        tests=(HANDLES + "test_whoever_had_opened_the_source_is_told_where_it_is_before_anything_is_looked_for",),
    ),
)  # fmt: skip

PLANTED = (*ACCEPTING, *WORKING, *REMEMBERING, *DELIVERING)
