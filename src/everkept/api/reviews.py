"""Reviews: looking at finished sessions by hand, through the same claim as the scheduler's, and what came of it."""

from __future__ import annotations

from datetime import datetime

from everkept.api import review_views as r
from everkept.api import views as v
from everkept.api.base import Cases
from everkept.api.present import bounded, cursor_of, microseconds, moment, read_cursor, when
from everkept.domain.ids import parse_row_id, row_id
from everkept.domain.review.values import GENERATION_STATES
from everkept.errors import InvalidInput, NotFound
from everkept.store.connection import Connection
from everkept.store.review_list import ListedReview, count_generations, list_reviews
from everkept.store.review_schedule import look
from everkept.store.reviews import claim_review, reopen_imported
from everkept.store.sessions import find_session

REOPEN_AT_ONCE = 100


class Reviews(Cases):
    """Looks at finished sessions. The work itself is done in the background."""

    async def list_reviews(
        self, *, state: str | None = None, session_id: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> v.Page[r.Review]:
        """Finished stretches of sessions with how their reviews stand, the last finished first."""
        bounded(limit, "limit", 1, 1000)
        if state is not None and state not in GENERATION_STATES:
            known = ", ".join(GENERATION_STATES)
            raise InvalidInput(f"state is one of {known}", field="state", known=list(GENERATION_STATES))
        stream = None if session_id is None else parse_row_id("ses", session_id)

        def read(conn: Connection) -> list[ListedReview]:
            return list_reviews(
                conn, self._project_id, state=state, stream=stream, before=read_cursor(cursor), limit=limit + 1
            )

        rows = await self._store.read(read)
        following = cursor_of(rows[limit - 1].generation) if len(rows) > limit else None
        return v.Page(items=[_review_view(row) for row in rows[:limit]], next_cursor=following)

    async def run_reviews(self, *, since: datetime | None = None) -> r.ReviewsStarted:
        """Start the review of what waits, however fresh and short; `since`: first reopen old history that ended then
        or later, which was imported and not looked at. What does not fit under review at once follows by itself."""
        reopened = 0 if since is None else await self._reopen(since)

        def start(conn: Connection) -> r.ReviewsStarted:
            opened = look(conn, self._project_id, self._settings, by_hand=True).opened
            return r.ReviewsStarted(
                opened=opened, reopened=reopened, waiting=count_generations(conn, self._project_id, "waiting"),
                reviewing=count_generations(conn, self._project_id, "reviewing"),
            )  # fmt: skip

        return await self._write(start)

    async def _reopen(self, since: datetime) -> int:
        reopened, after, since_us = 0, 0, microseconds(since, "since")
        while numbers := await self._write(reopen_imported, self._project_id, since_us, after, REOPEN_AT_ONCE):
            reopened, after = reopened + len(numbers), numbers[-1]
        return reopened

    async def claim_review(self, session_id: str) -> r.Review | None:
        """Start the review of one session, also of one that went by unreviewed. None where its newest stretch is under
        review, or was reviewed. Raises NotFound."""
        stream = parse_row_id("ses", session_id)

        def claim(conn: Connection) -> ListedReview | None:
            if find_session(conn, self._project_id, stream) is None:
                raise NotFound(f"there is no session {session_id} in this project", id=session_id)
            if claim_review(conn, self._project_id, stream) is None:
                return None
            return list_reviews(conn, self._project_id, stream=stream, limit=1)[0]

        found = await self._write(claim)
        return None if found is None else _review_view(found)


def _review_view(row: ListedReview) -> r.Review:
    return r.Review(
        id=None if row.review is None else row_id("rev", row.review), session_id=row_id("ses", row.stream),
        generation=row.generation, state=row.state, reason=row.reason, ended_at=when(row.ended_at),
        finished_at=moment(row.finished_at), passed_at=when(row.passed_at), asked_by=row.asked_by, staged=row.staged,
        refused=[r.RefusedDraft(what=x.what, reason=x.reason) for x in row.refused], note=row.note,
    )  # fmt: skip
