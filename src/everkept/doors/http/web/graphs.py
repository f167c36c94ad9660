"""Small graphs as drawings: names on a ring, the same each time, with a line for each relation."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from everkept.api import views as v

NODES_MAX = 24
WIDTH, HEIGHT = 720, 440
RING_X, RING_Y = 200, 180
"""Half of the ring's width and height, in units of the drawing; names stand outside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """`x`, `y` in units of the drawing; its name is written away from the middle, from `anchor` on."""

    name: str
    x: int
    y: int
    label_x: int
    label_y: int
    anchor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A straight line from one node to another; `words` say what relates them."""

    start: Node
    end: Node
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    nodes: Sequence[Node]
    edges: Sequence[Edge]
    left_out: int
    """Names that are not drawn: those with the fewest relations."""


def ring(relations: Iterable[tuple[str, str, str]]) -> Graph:
    """(from, words, to), each drawn once; of more than `NODES_MAX` names those that relate to most, by the alphabet."""
    told = sorted({each for each in relations if each[0] != each[2]})
    degree = Counter(name for start, _, end in told for name in (start, end))
    drawn = sorted(sorted(degree, key=lambda name: (-degree[name], name))[:NODES_MAX])
    nodes = {name: _node(name, place, len(drawn)) for place, name in enumerate(drawn)}
    edges = [
        Edge(start=nodes[start], end=nodes[end], words=words)
        for start, words, end in told
        if start in nodes and end in nodes
    ]
    return Graph(nodes=list(nodes.values()), edges=edges, left_out=len(degree) - len(drawn))


def _node(name: str, place: int, of: int) -> Node:
    turn = 2 * math.pi * place / of - math.pi / 2
    across, down = math.cos(turn), math.sin(turn)
    return Node(
        name=name, x=round(WIDTH / 2 + RING_X * across), y=round(HEIGHT / 2 + RING_Y * down),
        label_x=round(WIDTH / 2 + (RING_X + 12) * across), label_y=round(HEIGHT / 2 + (RING_Y + 16) * down + 4),
        anchor="middle" if abs(across) < 0.2 else "start" if across > 0 else "end",
    )  # fmt: skip


def of_entities(facts: Sequence[v.Fact], entities: Sequence[v.Entity]) -> Graph:
    """Entities that a believed fact relates: it is about one, and its object is the name of another."""
    known = {word.casefold(): entity.name for entity in entities for word in (*entity.aliases, entity.name)}
    return ring(
        (known.get(fact.entity.casefold(), fact.entity), fact.predicate, known[fact.object.casefold()])
        for fact in facts
        if fact.live and fact.object.casefold() in known
    )
