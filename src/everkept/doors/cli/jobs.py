"""`jobs`: background work that waits, runs or has failed, and what can be done about it."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from everkept.doors.cli import backend, screen
from everkept.doors.cli.options import COMMON, Common, Cursor, Limit, command_group
from everkept.doors.cli.wording import count, more

jobs = command_group("jobs")
JobId = Annotated[str, Parameter(help="The job's id (job_…).")]


@jobs.default
async def list_jobs(
    *,
    state: Annotated[str | None, Parameter(help="waiting, ready, leased, done, dead or discarded.")] = None,
    kind: Annotated[str | None, Parameter(help="E.g. extract_facts.")] = None,
    subject: Annotated[str | None, Parameter(help="Only what waits in this subject's lane.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    common: Common = COMMON,
) -> None:
    """List background work; retry, discard or release it, pause or resume a kind of it."""
    async with backend.memory(common.project) as memory:
        page = await memory.list_jobs(state=state, kind=kind, subject=subject, limit=limit, cursor=cursor)
    if common.json:
        screen.emit(page)
        return
    if not page.items:
        screen.say("no such jobs" if state or kind or subject else "no jobs")
        return
    from everkept.doors.cli.jobs_pages import job_table

    screen.show(job_table(page.items))
    screen.say(count(len(page.items), "job") + more(page.next_cursor))


@jobs.command(name="show")
async def show_job(job: JobId, /, *, common: Common = COMMON) -> None:
    """Show one job with all its earlier failures."""
    async with backend.memory(common.project) as memory:
        found = await memory.get_job(job)
    if common.json:
        screen.emit(found)
        return
    from everkept.doors.cli.jobs_pages import job_page

    screen.show(job_page(found))


@jobs.command(name="retry")
async def retry_job(
    target: Annotated[str, Parameter(help="A job (job_…), or an episode (epi_…) with --stage.")],
    /,
    *,
    stage: Annotated[str | None, Parameter(help="For an episode: summary or facts.")] = None,
    common: Common = COMMON,
) -> None:
    """Give a failed job, or a stage of an episode, a new budget; its history is kept."""
    async with backend.memory(common.project) as memory:
        if stage is not None:
            episode = await memory.retry_episode(target, stage)
            screen.emit(episode) if common.json else print(f"{episode.id}  {stage} {episode.stages[stage].state}")
            return
        job = await memory.retry_job(target)
    screen.emit(job) if common.json else print(f"{job.id}  {job.state}")


@jobs.command(name="retry-all")
async def retry_jobs(
    *,
    kind: Annotated[str | None, Parameter(help="Only this kind, e.g. extract_facts.")] = None,
    cause: Annotated[str | None, Parameter(help="Only this class of error, e.g. provider_down.")] = None,
    common: Common = COMMON,
) -> None:
    """Retry all dead jobs, or those of one kind or cause."""
    async with backend.memory(common.project) as memory:
        retried = await memory.retry_jobs(kind=kind, cause=cause)
    screen.emit({"retried": retried}) if common.json else print(f"{count(retried, 'dead job')} will be tried again")


Kind = Annotated[str | None, Parameter(help="A kind of job, e.g. extract_facts.")]
Provider = Annotated[str | None, Parameter(help="Instead of a kind: a provider, e.g. anthropic.")]


@jobs.command(name="pause")
async def pause_jobs(
    kind: Kind = None,
    /,
    *,
    provider: Provider = None,
    why: Annotated[str, Parameter(help="Shown wherever something waits for it.")] = "by hand",
    common: Common = COMMON,
) -> None:
    """Begin no job of a kind, or none that asks a provider, until it is resumed; nothing is lost."""
    async with backend.memory(common.project) as memory:
        pause = await memory.pause_jobs(kind=kind, provider=provider, why=why)
    screen.emit(pause) if common.json else print(f"{pause.what} {pause.name} is paused")


@jobs.command(name="resume")
async def resume_jobs(kind: Kind = None, /, *, provider: Provider = None, common: Common = COMMON) -> None:
    """Go on with a kind or a provider that was paused."""
    async with backend.memory(common.project) as memory:
        await memory.resume_jobs(kind=kind, provider=provider)
        left = await memory.list_pauses()
    screen.emit({"paused": [each.model_dump(mode="json") for each in left]}) if common.json else print(
        f"{kind or provider} goes on"
    )


@jobs.command(name="discard")
async def discard_job(
    job: JobId,
    /,
    *,
    reason: Annotated[str, Parameter(help="Why; kept with the job.")] = "by hand",
    common: Common = COMMON,
) -> None:
    """Give a job up for good; what it works on shows the reason."""
    async with backend.memory(common.project) as memory:
        after = await memory.discard_job(job, reason=reason)
    screen.emit(after) if common.json else print(f"{after.id}  {after.state}")


@jobs.command(name="release")
async def release_job(job: JobId, /, *, common: Common = COMMON) -> None:
    """End a lease now; whoever held it can no longer write."""
    async with backend.memory(common.project) as memory:
        after = await memory.release_job(job)
    screen.emit(after) if common.json else print(f"{after.id}  {after.state}")
