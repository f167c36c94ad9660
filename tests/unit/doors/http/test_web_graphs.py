from __future__ import annotations

from everkept.doors.http.web.graphs import HEIGHT, NODES_MAX, WIDTH, ring


def test_each_relation_is_one_line_between_two_names() -> None:
    graph = ring([("Ana", "is married to", "Rui"), ("Marta", "has sister", "Ana"), ("Ana", "is married to", "Rui")])
    assert [node.name for node in graph.nodes] == ["Ana", "Marta", "Rui"]
    assert [(edge.start.name, edge.words, edge.end.name) for edge in graph.edges] == [
        ("Ana", "is married to", "Rui"), ("Marta", "has sister", "Ana"),
    ]  # fmt: skip
    assert graph.left_out == 0


def test_what_relates_to_itself_is_not_drawn() -> None:
    assert ring([("Ana", "is", "Ana")]).nodes == []


def test_the_first_name_is_at_the_top_and_every_one_is_inside_the_drawing() -> None:
    graph = ring([(f"n{place:02}", "knows", f"n{place + 1:02}") for place in range(NODES_MAX - 1)])
    assert (graph.nodes[0].x, graph.nodes[0].anchor) == (WIDTH // 2, "middle")
    assert len({(node.x, node.y) for node in graph.nodes}) == NODES_MAX
    assert all(0 < node.label_x < WIDTH and 0 < node.label_y < HEIGHT for node in graph.nodes)


def test_of_many_names_those_that_relate_to_most_are_drawn_and_the_others_counted() -> None:
    graph = ring([("hub", "knows", f"n{place:02}") for place in range(NODES_MAX + 5)])
    assert (len(graph.nodes), graph.left_out) == (NODES_MAX, 6)
    assert "hub" in {node.name for node in graph.nodes}
    assert len(graph.edges) == NODES_MAX - 1
