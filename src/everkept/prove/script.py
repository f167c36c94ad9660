"""The model and the embedders of the proof: scripted, repeatable, and every paid answer written into the record."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from everkept.ports.models import Question, RawReply
from everkept.prove.record import Record

_LIVES = re.compile(r"I (?:now )?live in (?P<place>[A-Z]\w+)")
_STAYS = re.compile(r"I stay in (?P<place>[A-Z]\w+)")
_LIKES = re.compile(r"I like (?P<thing>[a-z]+)")
BABBLE = "The first reply to a question about babble cannot be used"


class RecordedModel:
    """Finds where people live and stay and what they like; its first reply about babble is no reply."""

    name = "fake:proof"
    pool = "fake"

    def __init__(self, record: Record) -> None:
        self._record = record
        self._babbled: set[str] = set()

    async def ask(self, question: Question) -> RawReply:
        ask = self._record.asked("question", step=question.step)
        text = self._answer(question)
        self._record.told(ask, reply=text)
        return RawReply(text=text, tokens_in=len(question.user) // 4, tokens_out=len(text) // 4, usd=0.001)

    def estimate_usd(self, tokens_in: int, tokens_out: int) -> float:
        return 0.0

    async def close(self) -> None:
        return None

    def _answer(self, question: Question) -> str:
        if "babble" in question.user and question.step not in self._babbled:
            self._babbled.add(question.step)
            return BABBLE
        match question.step:
            case "facts":
                return json.dumps({"facts": [f for turn in _turns(question) for f in _facts(turn)]})
            case "conflicts":
                pairs = re.findall(r'"pair": (\d+)', question.user)
                return json.dumps({"verdicts": [{"pair": int(n), "verdict": "new"} for n in pairs]})
            case "fold":
                return json.dumps({"summary": "They have talked for a while, and more than once."})
            case "pages":
                return json.dumps({"pages": [_page(str(line["user"])) for line in _asked(question)[:1]]})
            case "review":
                return json.dumps({"proposals": [_proposal(line) for line in _asked(question)[:1]]})
            case _:
                said = " ".join(str(turn["text"])[:200] for turn in _turns(question))
                return json.dumps({"summary": f"They said: {said}", "learnings": ["They talk."]})


def _turns(question: Question) -> list[dict[str, Any]]:
    inside = question.user.partition("<transcript>\n")[2].partition("\n</transcript>")[0]
    return [json.loads(line) for line in inside.splitlines()]


def _asked(question: Question) -> list[dict[str, Any]]:
    """The lines of a session that a person typed."""
    inside = question.user.partition("<session>\n")[2].partition("\n</session>")[0]
    return [line for line in map(json.loads, inside.splitlines()) if "user" in line]


def _page(asked: str) -> dict[str, Any]:
    """A note of what was asked, with a statement beside it that nothing bears out."""
    grounded = {"text": f"It was asked: {asked}", "quote": asked, "section": "", "replaces": ""}
    invented = {**grounded, "text": "It is in `nowhere.txt`."}
    return {
        "action": "create", "page": "", "kind": "note", "title": asked, "statements": [grounded, invented],
        "supersedes": "",
    }  # fmt: skip


def _proposal(line: dict[str, Any]) -> dict[str, Any]:
    """A new page that says what was asked."""
    asked = str(line["user"])
    return {
        "action": "create", "page": "", "kind": "gotcha", "title": f"Asked: {asked}"[:80], "section": "", "body": asked,
        "why": "It was asked.", "confidence": 0.5, "answers": "", "quotes": [asked],
    }  # fmt: skip


def _facts(turn: dict[str, Any]) -> list[dict[str, Any]]:
    text = str(turn["text"])
    found = [("lives in", m["place"], "one", "entity", "place", m[0]) for m in _LIVES.finditer(text)]
    found += [("stays in", m["place"], "unclear", "entity", "place", m[0]) for m in _STAYS.finditer(text)]
    found += [("likes", m["thing"], "many", "literal", "other", m[0]) for m in _LIKES.finditer(text)]
    return [
        {
            "entity": turn["speaker"], "predicate": predicate, "object": thing,
            "statement": f"{turn['speaker']} {predicate} {thing}.", "quote": quote, "seq": turn["seq"],
            "confidence": 0.9, "valid_from": "", "valid_until": "", "change": "state", "replaces": "", "holds": holds,
            "kind": kind, "object_type": type_,
        }
        for predicate, thing, holds, kind, type_, quote in found
    ]  # fmt: skip


def _vector(text: str, dim: int) -> npt.NDArray[np.float32]:
    seed = hashlib.blake2b(text.encode(), digest_size=dim).digest()
    raw = np.frombuffer(seed, np.uint8).astype(np.float32) - 127.5
    return raw / np.float32(np.linalg.norm(raw))


class HashedEmbedder:
    """A vector made of a text's hash: no meaning, but the same each time. Its pool is one that costs money."""

    dim = 16
    pool = "fake-embedder"

    def __init__(self, name: str = "fake:hashed") -> None:
        self.name = name

    async def embed_passages(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        return np.stack([_vector(f"{self.name}{text}", self.dim) for text in texts])

    async def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        return _vector(f"{self.name}{text}", self.dim)


class HashedWords:
    """Static word vectors made of hashes."""

    name = "hashed-words"
    dim = 64

    def lookup(self, words: Sequence[str]) -> npt.NDArray[np.float32]:
        return np.stack([_vector(word, self.dim) for word in words]) if words else np.zeros((0, self.dim), np.float32)
