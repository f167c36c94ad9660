"""The planted bugs of delivery (G11): consumers, webhooks, packets, and the ends of launches."""

from __future__ import annotations

from tests.mutation.bug import Planted

CASES = "tests/crash/model/test_deliveries_model.py::test_a_hard_case_of_delivery_holds"
CONSUMERS = "tests/contract/engine/test_consumers.py::"
ERASED = "tests/contract/workstreams/test_erased_sessions.py::"
FINISH = "tests/contract/workstreams/test_launch_finish.py::"
FOLLOWING = "tests/contract/engine/test_following.py::"
INBOX = "tests/unit/doors/python/test_inbox.py::"
KILL = "tests/mutation/layer_kill.py::"
LEASE = "tests/contract/workstreams/test_launch_lease.py::"
MERGED = "tests/contract/test_merged_changes.py::"
OTHERS = "tests/contract/workstreams/test_packets_of_others.py::"
PACKETS = "tests/contract/workstreams/test_packets.py::"
PUBLISHING = "tests/nats/test_publishing.py::"
SUB_AGENTS = "tests/contract/workstreams/test_sub_agents.py::"
TAKING = "tests/nats/test_taking.py::"
WEBHOOKS = "tests/contract/engine/test_webhooks.py::"
COMMIT_BETWEEN = "[conn.raw.execute(sql) for sql in ('commit', 'begin immediate', 'savepoint call')]"

_CONSUMERS = (
    Planted(
        name="a consumer is taken from who still holds it", guarantee="G11", layer="model", file="store/changes.py",
        old="(lease_until is null or lease_until <= :now or owner = :owner)\nreturning fence",
        new="(:now > 0 or owner = :owner)\nreturning fence",
        tests=(CASES + "[holders_stand_in_each_others_way]",),
    ),
    Planted(
        name="a lease that ended still moves the cursor", guarantee="G11", layer="model", file="store/changes.py",
        old="(fence = :fence and lease_until > :now))", new="(fence = :fence and :now > 0))",
        tests=(CASES + "[a_lease_that_ended_moves_nothing_though_nobody_took_it]",),
    ),
    Planted(
        name="a consumer that is made again has fences of before", guarantee="G11", layer="model",
        file="store/consumers.py",
        old="    conn.run(_KEEP_FENCE, {\"project\": project, \"fence\": fence})\n", new="",
        tests=(CASES + "[replayed_removed_and_made_again]",),
    ),
    Planted(
        name="a replay leaves its holder in place", guarantee="G11", layer="model", file="store/consumers.py",
        old="\"after\": after})\n    fence_off(conn, project, name)\n", new="\"after\": after})\n",
        tests=(CASES + "[replayed_removed_and_made_again]",),
    ),
    Planted(
        name="what was never given can be acknowledged", guarantee="G11", layer="model", file="store/consumers.py",
        old="    if held and handed_out < upto <= find_head(conn, project):\n",
        new="    if held and find_head(conn, project) < upto <= handed_out:\n",
        tests=(CASES + "[taken_over_between_effect_and_acknowledgement]",),
    ),
    Planted(
        name="a filter covers what was not looked at", guarantee="G11", layer="model", file="store/changes.py",
        old="    return int(rows[-1][0]) if len(rows) == limit else _end_of_scan(after, head)\n",
        new="    return _end_of_scan(after, head)\n",
        tests=(CASES + "[what_a_filter_passes_by_is_covered_and_nothing_else]",),
    ),
    Planted(
        name="the inbox marks a change before its effect", guarantee="G11", layer="model", file="doors/python/inbox.py",
        old="            yield added == 1\n",
        new="            self._connection.commit()\n            yield added == 1\n",
        tests=(CASES + "[dies_in_an_effect_and_after_it]",),
    ),
    Planted(
        name="the inbox marks nothing", guarantee="G11", layer="contract", file="doors/python/inbox.py",
        old="            yield added == 1\n", new="            yield added <= 1\n",
        tests=(INBOX + "test_what_is_given_again_has_no_second_effect",),
    ),
    Planted(
        name="followers of a merged project go on behind what none had heard", guarantee="G11", layer="model",
        file="store/merge_rest.py",
        old="select :target, c.name, :change, max(c.fence, t.last_fence) + 1, c.created_at\n",
        new="select :target, c.name, max(:change, t.change_seq), max(c.fence, t.last_fence) + 1, c.created_at\n",
        tests=(CASES + "[merged_while_others_read_and_speak]",),
    ),
    Planted(
        name="the erase of a subject leaves the names that a merge brought", guarantee="G10", layer="contract",
        file="store/merge_rest.py", old="jobs, unheard, joined,\n", new="jobs, unheard,\n",
        tests=(MERGED + "test_a_subject_that_the_target_named_only_after_the_carry_has_what_came_before",),
    ),
)  # fmt: skip

_WEBHOOKS = (
    Planted(
        name="a webhook's cursor moves before the answer", guarantee="G11", layer="model", file="deliver/webhooks.py",
        old="            answer = await self._try(webhook, change, lease)\n",
        new="            await self._store.write(note_covered, webhook, lease.fence, change[0])\n"
            "            answer = await self._try(webhook, change, lease)\n",
        tests=(CASES + "[a_receiver_that_fails_in_every_way_and_recovers]",),
    ),
    Planted(
        name="a change that failed is overtaken by the next", guarantee="G11", layer="model",
        file="deliver/webhooks.py",
        old="            if not await self._note(webhook, lease, change[0], answer):\n                return False\n",
        new="            await self._note(webhook, lease, change[0], answer)\n",
        tests=(CASES + "[a_receiver_that_fails_in_every_way_and_recovers]",),
    ),
    Planted(
        name="a webhook that holds parks all the same", guarantee="G11", layer="model", file="deliver/webhooks.py",
        old="failed.rejected and webhook.on_reject == \"park\" and tries >= REJECTIONS_MAX",
        new="failed.rejected and tries >= REJECTIONS_MAX",
        tests=(CASES + "[one_that_holds_parks_nothing]",),
    ),
    Planted(
        name="a rejected change is passed by and not parked", guarantee="G11", layer="model",
        file="store/webhook_sending.py",
        old="    conn.run(_PARK, {**at, \"reason\": failed.error, \"tries\": tries})\n", new="",
        tests=(CASES + "[rejected_parked_and_taken_back]",),
    ),
    Planted(
        name="a parked change that fails again is gone", guarantee="G11", layer="model",
        file="store/webhook_sending.py",
        old="    if failed is None:\n        conn.run(_UNPARK",
        new="    if failed is None or failed.rejected:\n        conn.run(_UNPARK",
        tests=(CASES + "[rejected_parked_and_taken_back]",),
    ),
    Planted(
        name="each try has an id of its own", guarantee="G11", layer="model", file="deliver/webhooks.py",
        old="    return f\"dlv_{webhook.id}_{change[7]}\"\n",
        new="    return f\"dlv_{webhook.id}_{change[7]}.{webhook.tries}\"\n",
        tests=(CASES + "[a_receiver_that_fails_in_every_way_and_recovers]",),
    ),
    Planted(
        name="the signature is over other bytes than are sent", guarantee="G11", layer="contract",
        file="deliver/webhooks.py",
        old="sign(secret, delivery, timestamp, body) for secret",
        new="sign(secret, delivery, timestamp, body + b\"\\n\") for secret",
        tests=(WEBHOOKS + "test_each_change_is_one_signed_request_in_order_and_moves_the_cursor",),
        fails_with=("SignatureInvalid",),
    ),
    Planted(
        name="a sender that was taken over notes its answer", guarantee="G11", layer="contract",
        file="store/webhook_sending.py",
        old="    if conn.scalar(_HELD, at) is None:\n", new="    if conn.scalar(_HELD, at) == 0:\n",
        tests=(WEBHOOKS + "test_a_late_process_changes_nothing_of_what_was_passed_already",),
    ),
    Planted(
        name="a slow delivery outlasts its lease", guarantee="G11", layer="contract", file="deliver/webhooks.py",
        old="        if lease.trusted_until_s - asked_s > self._settings.timeout_s + RENEW_S:\n            return\n",
        new="        if lease.trusted_until_s > 0:\n            return\n",
        tests=(WEBHOOKS + "test_a_slow_delivery_keeps_its_lease_over_the_next_one",),
    ),
    Planted(
        name="a wait ends with the process that began it", guarantee="G11", layer="contract",
        file="store/webhook_sending.py",
        old="if webhook.state != \"active\" or (webhook.next_try_at or 0) > conn.now() or is_merged(conn, project):",
        new="if webhook.state != \"active\" or is_merged(conn, project):",
        tests=(WEBHOOKS + "test_a_wait_outlasts_the_process_that_began_it",),
    ),
    Planted(
        name="a change is passed in another transaction than it is parked", guarantee="G11", layer="kill",
        file="store/webhook_sending.py",
        old="    conn.run(_PARK, {**at, \"reason\": failed.error, \"tries\": tries})\n",
        new=f"    {COMMIT_BETWEEN}\n    conn.run(_PARK, {{**at, \"reason\": failed.error, \"tries\": tries}})\n",
        tests=(KILL + "test_kill[webhook-parked]",),
    ),
)  # fmt: skip

_LAUNCHES = (
    Planted(
        name="sub-agents of a session that is linked late stay out", guarantee="G11", layer="contract",
        file="store/launch_sessions.py",
        old="    below = [stream for (stream,) in conn.rows(_LINK_BELOW, "
            "{**asked, \"launches\": json.dumps(linked)})]\n",
        new="    below: list[int] = []\n",
        tests=(SUB_AGENTS + "test_sub_agents_of_a_session_that_is_linked_late_are_linked_with_it",),
    ),
    Planted(
        name="accepting an older packet moves the cursor back", guarantee="G11", layer="contract",
        file="store/launch_sessions.py",
        old="  delivered = max(workstream_cursors.delivered, excluded.delivered)\n",
        new="  delivered = excluded.delivered\n",
        tests=(PACKETS + "test_an_older_packet_that_is_accepted_late_moves_no_cursor_back",),
    ),
    Planted(
        name="a packet that leaves a gap moves the cursor over it", guarantee="G11", layer="contract",
        file="store/launch_sessions.py",
        old="  where workstream_cursors.delivered >= :start\"\"\")", new="  where :start >= 0\"\"\")",
        tests=(OTHERS + "test_a_packet_of_a_session_that_was_told_more_does_not_move_one_that_was_told_less",),
    ),
    Planted(
        name="an accepted packet covers what came after it was made", guarantee="G11", layer="contract",
        file="store/packets.py",
        old="receiver, row.packet_from, row.packet_through)",
        new="receiver, row.packet_from, ledger_head(conn, row.workstream))",
        tests=(PACKETS + "test_what_is_taken_in_after_it_was_prepared_comes_with_the_next_packet",),
    ),
    Planted(
        name="a packet is accepted in another transaction than its cursor moves", guarantee="G11", layer="kill",
        file="store/packets.py",
        old="    receiver = native or row.native or row.resumes\n    if receiver is not None:\n",
        new=f"    {COMMIT_BETWEEN}\n    receiver = native or row.native or row.resumes\n    if receiver is not None:\n",
        tests=(KILL + "test_kill[workstream]",),
    ),
    Planted(
        name="a packet is made anew for a retry", guarantee="G11", layer="contract", file="store/packets.py",
        old="    return launch.packet is None or newest_erase(conn, launch.project) != launch.packet_erasure\n",
        new="    return conn.now() > 0\n",
        tests=(LEASE + "test_the_same_key_is_the_same_launch_with_the_same_bytes",),
        fails_with=("AssertionError", "Failed", "TimeoutError", "RecursionError"),
    ),
    Planted(
        name="what was erased is still in a packet", guarantee="G10", layer="contract", file="store/packets.py",
        old="    return launch.packet is None or newest_erase(conn, launch.project) != launch.packet_erasure\n",
        new="    return launch.packet is None\n",
        tests=(ERASED + "test_a_packet_of_what_was_erased_is_gone_at_once_and_has_a_successor",),
    ),
    Planted(
        name="a packet is accepted after a take-over", guarantee="G11", layer="contract", file="store/packets.py",
        old="    row = get_launch(conn, project, launch)\n    require_held(row, fence)\n",
        new="    row = get_launch(conn, project, launch)\n",
        tests=(LEASE + "test_a_take_over_fences_the_old_holder_off",),
    ),
    Planted(
        name="a heartbeat brings back a lease that ended", guarantee="G11", layer="contract", file="store/launches.py",
        old="    if not _holds(conn, row) or row.fence != fence:\n", new="    if row.fence != fence:\n",
        tests=(LEASE + "test_heartbeats_keep_a_lease_and_none_brings_back_one_that_ended",),
    ),
    Planted(
        name="two launches hold one workstream", guarantee="G11", layer="contract", file="store/launches.py",
        old="    if holder.lease_until > conn.now():\n", new="    if holder.lease_until > conn.now() + LEASE_US:\n",
        tests=(LEASE + "test_a_second_launch_is_told_who_holds_the_workstream_and_until_when",),
    ),
    Planted(
        name="a late finish moves the source cursor of the newer holder", guarantee="G11", layer="contract",
        file="store/launch_ends.py",
        old="    if row.state == \"lost\" or finish.fence != row.fence or finish.fence != row.workstream_fence:\n",
        new="    if finish.fence > row.workstream_fence:\n",
        tests=(LEASE + "test_a_take_over_fences_the_old_holder_off",),
    ),
    Planted(
        name="a finish moves the source cursor over events that are missing", guarantee="G11", layer="contract",
        file="store/launch_ends.py",
        old="    if has_gap(conn, row):\n", new="    if has_gap(conn, row) and row.acknowledged < 0:\n",
        tests=(FINISH + "test_the_source_cursor_comes_with_the_completing_batch_alone",),
    ),
    Planted(
        name="events that wait behind a gap are acknowledged", guarantee="G11", layer="contract",
        file="store/launch_events.py",
        old="        whole = sum(number == expected for expected, (number,) in enumerate(ahead, through + 1))\n",
        new="        whole = sum(number >= expected for expected, (number,) in enumerate(ahead, through + 1))\n",
        tests=(FINISH + "test_batches_are_acknowledged_without_a_gap_and_may_be_sent_again",),
    ),
    Planted(
        name="an event that is told again is another one", guarantee="G2", layer="contract", file="store/sessions.py",
        old="        same = self.known.get(event.key_hash) or self._told_before(event)\n", new="        same = None\n",
        tests=(FINISH + "test_batches_are_acknowledged_without_a_gap_and_may_be_sent_again",),
        fails_with=("AssertionError", "IntegrityError"),
    ),
)  # fmt: skip

_NATS = (
    Planted(
        name="the cursor moves before the server has the change", guarantee="G11", layer="contract",
        file="deliver/nats_publisher.py", old="            at = await self._try(turn, change, turn.last)\n",
        new="            turn.stored = int(change[0])\n            at = await self._try(turn, change, turn.last)\n",
        tests=(PUBLISHING + "test_what_the_server_had_before_it_died_is_not_published_again[sqlite]",),
    ),
    Planted(
        name="a publisher that was frozen publishes late", guarantee="G11", layer="contract",
        file="deliver/nats_publisher.py", old="AFTER: str(last), ", new="",
        tests=(PUBLISHING + "test_a_frozen_publisher_is_fenced_by_store_and_server[sqlite]",),
    ),
    Planted(
        name="a message is acknowledged before it is taken in", guarantee="G1", layer="contract",
        file="api/nats_intake.py", old="        letter = self._letter(message)\n        try:\n",
        new="        letter = self._letter(message)\n        await message.ack()\n        try:\n",
        tests=(TAKING + "test_ten_deliveries_of_one_message_are_one_event[sqlite]",),
    ),
    Planted(
        name="what cannot be taken in is dropped", guarantee="G14", layer="contract", file="api/nats_intake.py",
        old="        await self._parts.store.write(set_aside, letter)\n", new="",
        tests=(TAKING + "test_a_message_for_a_project_that_is_made_later_is_taken_in_by_a_retry[sqlite]",),
    ),
)  # fmt: skip

DELIVERING = (*_CONSUMERS, *_WEBHOOKS, *_NATS, *_LAUNCHES)
