"""Taking in what people changed on disk: each edit is a version of its page, or is kept beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from everkept.deliver.disk_edits import Edit, Edits, too_many
from everkept.deliver.git import PROJECTED, Git, blob_id
from everkept.deliver.page_file import PageFile, name_in, parse
from everkept.deliver.work_tree import MARKER, Disturbed, WorkTree
from everkept.domain.pages import BODY_CHARS_MAX, TITLE_CHARS_MAX
from everkept.errors import Unavailable
from everkept.store.pages import BY_ITSELF
from everkept.store.store import Store
from everkept.store.wiki_pages import EditTaken, FileEdit, GoneFile, delete_gone, still_there, take_edit

Clean = Callable[[str], str]
"""f(text) → what may be kept of it: no secret, and nothing private."""
DISK = "disk"


class NeedsAttention(Unavailable):
    """The wiki waits for a person; nothing was changed."""


class _Unfit(Exception):
    """A file whose content cannot be a page's; the message says why."""


@dataclass(slots=True, kw_only=True)
class TakenIn:
    """What became of all edits of one look."""

    edits: int = 0
    deleted: int = 0
    replaceable: dict[str, set[str]] = field(default_factory=dict)
    """{path: contents that are kept elsewhere by now}: such a file may be replaced."""
    again: set[int] = field(default_factory=set)
    """Pages whose files are to be written again."""
    drop: set[str] = field(default_factory=set)
    """Paths that no page has."""
    set_aside: dict[str, str] = field(default_factory=dict)
    """{where an edit is kept: why it was not taken in}."""


class Intake:
    """Of one project's wiki."""

    def __init__(self, store: Store, project: int, git: Git, tree: WorkTree, clean: Clean) -> None:
        self._store = store
        self._project = project
        self._git = git
        self._tree = tree
        self._clean = clean

    def take(self, found: Edits, since: str, until: str, *, may_delete: bool) -> TakenIn:
        """Take all edits in, then the deletes. `since`..`until`: the commits of other people.

        Raises NeedsAttention, before anything is done, where more vanished than anybody means to delete.
        """
        blobs = self._contents(found)
        gone = self._gone(found, blobs)
        if gone and may_delete:
            self._refuse_many(len(gone), found.files)
        taken = TakenIn(again={g.page for g in gone} | self._pages_at(found.undone))
        versions: dict[str, int] = {}
        for edit in found.edits:
            author = self._author(edit, since, until)
            self._take(edit, blobs, author, versions, taken)
        if gone and may_delete:
            taken.deleted = self._store.write_now(delete_gone, self._project, gone)
        return taken

    # ---- one edit

    def _take(
        self, edit: Edit, blobs: Mapping[str, bytes], author: str, versions: dict[str, int], taken: TakenIn
    ) -> None:
        made_on = [parse(blobs[blob]) for blob in sorted(edit.of) if blob in blobs]
        try:
            wanted = self._file_edit(edit, parse(blobs[edit.blob]), made_on, author, versions.get(edit.path))
            result = self._store.write_now(take_edit, wanted)
        except UnicodeDecodeError:
            result = EditTaken(state="set_aside", because="it is not text in UTF-8", page=_page_of(made_on))
        except _Unfit as unfit:
            result = EditTaken(state="set_aside", because=str(unfit), page=_page_of(made_on))
        if result.state == "set_aside":
            kept = self._tree.keep_beside(edit.path, blobs[edit.blob])
            taken.set_aside[kept] = result.because
        if result.version is not None:
            versions[edit.path] = result.version
        if result.page is not None:
            taken.again.add(result.page)
        taken.drop.add(edit.path)  # unless its page is projected there
        taken.edits += 1
        taken.replaceable.setdefault(edit.path, set()).add(edit.blob)

    def _file_edit(
        self, edit: Edit, file: PageFile, made_on: Sequence[PageFile], author: str, after: int | None
    ) -> FileEdit:
        """`after`: the version that an edit of the same file became just before. Raises _Unfit."""
        folder = edit.path.partition("/")[0]
        before = made_on[0] if made_on else None
        versions = {f.version for f in made_on if f.version is not None}
        base = after or (file.version if file.version in versions else min(versions, default=None))
        page = None if before is None else before.page
        titles = (file.title, before.title if before else None, _heading(file.body), name_in(edit.path))
        title = next((kept for given in titles if given and (kept := self._clean(given).strip())), "")
        body = self._clean(file.body)
        _check(title, body)
        return FileEdit(
            project=self._project, page=page, named=None if before else file.page, base=base if page else None,
            kind=folder if edit.moved_from or before is None else file.kind or folder,
            slug=before.slug if before and before.slug else name_in(edit.path),
            title=title, body=body, author=author,
        )  # fmt: skip

    def _author(self, edit: Edit, since: str, until: str) -> str:
        """Git's author of a commit. No name makes a person's edit one of those that are written by themselves."""
        name = self._git.last_author(since, until, edit.path) if edit.where == "branch" else DISK
        return DISK if name in BY_ITSELF or not name else name

    def _contents(self, found: Edits) -> dict[str, bytes]:
        """What every edit is, and what it was made on. What is only on disk must still be what was seen there."""
        on_disk = {e.blob: e.path for e in found.edits if e.where == "disk"}
        kept = {blob for edit in found.edits for blob in edit.of}
        kept |= {e.blob for e in found.edits if e.where == "branch"} | set(found.vanished.values())
        blobs = self._git.blobs(kept)
        for blob, path in on_disk.items():
            data = self._tree.read(path)
            if data is None or blob_id(data) != blob:
                raise Disturbed(f"{path} was changed just now", path=path)
            blobs[blob] = data
        return blobs

    # ---- deletes

    def _gone(self, found: Edits, blobs: Mapping[str, bytes]) -> list[GoneFile]:
        files = [parse(blobs[blob]) for blob in found.vanished.values() if blob in blobs]
        gone = [GoneFile(page=f.page, slug=f.slug, version=f.version) for f in files
                if f.page is not None and f.slug is not None and f.version is not None]  # fmt: skip
        return self._store.read_now(still_there, self._project, gone) if gone else []

    def _refuse_many(self, gone: int, files: int) -> None:
        if self._tree.read(MARKER) is None:
            raise NeedsAttention(
                f"{gone} pages are missing, and so is {MARKER}: nothing was deleted; bring the files back"
                " (git checkout -- .), or delete pages with `everkept pages delete`"
            )
        if too_many(gone, files):
            raise NeedsAttention(
                f"{gone} of {files} pages are missing: nothing was deleted; bring the files back (git checkout -- .),"
                " or delete pages with `everkept pages delete`"
            )

    def _pages_at(self, paths: Sequence[str]) -> set[int]:
        ids = self._git.tree(self._git.refs()[PROJECTED]) if paths else {}
        files = self._git.blobs(ids[path] for path in paths)
        return {f.page for f in map(parse, files.values()) if f.page is not None}


def _page_of(files: Sequence[PageFile]) -> int | None:
    return files[0].page if files else None


def _heading(body: str) -> str | None:
    first = body.lstrip().partition("\n")[0]
    return first.removeprefix("# ").strip() or None if first.startswith("# ") else None


def _check(title: str, body: str) -> None:
    if not body.strip():
        raise _Unfit("nothing in the file is to be kept; delete it to delete the page")
    if not title:
        raise _Unfit("it has no title that may be kept")
    if "\0" in body or "\0" in title:
        raise _Unfit("it holds a NUL character")
    if len(body) > BODY_CHARS_MAX or len(title) > TITLE_CHARS_MAX:
        raise _Unfit(f"a page has at most {BODY_CHARS_MAX:,} characters, and its title {TITLE_CHARS_MAX}")
