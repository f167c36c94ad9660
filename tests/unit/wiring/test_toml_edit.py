"""One table in a TOML file: put in at its end and taken out, with every other byte as it was."""

from __future__ import annotations

import tomllib

import pytest

from everkept.errors import CannotWire
from everkept.wiring.toml_edit import add_table, remove_table, set_values, table_at

TABLE = ("mcp_servers", "everkept")
VALUES = {"command": "/home/é x/python", "args": ["-m", "everkept", "mcp"]}

CONFIGS = [
    "",
    "\n",
    'model = "o5" # mine\n',
    'model = "o5"\r\n\r\n[features]\r\nhooks = true\r\n',
    '[mcp_servers.github]\ncommand = "gh"\n\n[mcp_servers.github.env]\nA = "1"\n',
    'text = """\n[mcp_servers.everkept]\nnot a table\n"""\n# [mcp_servers.everkept]\n',
    "[[profiles]]\nname = 'a'\n\n\n# the end\n",
    '[mcp_servers]\n\n[projects."/x/[y]"]\ntrust_level = "trusted"\n',
]


@pytest.mark.parametrize("before", CONFIGS)
def test_a_table_is_put_in_and_taken_out_again(before: str) -> None:
    with_table = add_table(before, TABLE, VALUES)
    assert with_table.startswith(before)
    assert table_at(tomllib.loads(with_table), TABLE) == VALUES
    assert remove_table(with_table, TABLE) == before
    assert ("\r\n" in before) == ("\r\n" in with_table)


@pytest.mark.parametrize("before", CONFIGS)
def test_what_was_written_below_it_meanwhile_stays(before: str) -> None:
    more = '\n[later]\nkey = "[mcp_servers.everkept]"\n'
    assert remove_table(add_table(before, TABLE, VALUES) + more, TABLE) == before + more


def test_tables_inside_it_and_keys_added_by_hand_go_with_it() -> None:
    text = (
        add_table("a = 1\n", TABLE, VALUES) + 'startup_timeout_sec = 20\n\n[mcp_servers.everkept.env]\nB = "2"\n\n[z]\n'
    )
    assert remove_table(text, TABLE) == "a = 1\n\n[z]\n"


def test_a_header_in_a_string_over_lines_is_not_one() -> None:
    text = f"a = 1\n\nb = '''\n[mcp_servers.everkept]\n'''\n\n{add_table('', TABLE, VALUES)}"
    assert tomllib.loads(remove_table(text, TABLE)) == {"a": 1, "b": "[mcp_servers.everkept]\n"}


def test_values_are_set_in_place_and_other_keys_stay() -> None:
    text = add_table("a = 1\n", TABLE, VALUES) + "enabled = false # for now\n\n[z]\n"
    after = set_values(text, TABLE, {"command": "/new/python", "args": ["x"]})
    assert after == text.replace("/home/é x/python", "/new/python").replace('["-m", "everkept", "mcp"]', '["x"]')


def test_a_list_over_several_lines_is_refused_rather_than_broken() -> None:
    text = '[mcp_servers.everkept]\ncommand = "x"\nargs = [\n  "-m",\n]\n'
    with pytest.raises(CannotWire, match="delete it, and install again"):
        set_values(text, TABLE, VALUES)


def test_servers_in_one_line_are_refused() -> None:
    with pytest.raises(CannotWire, match="one line"):
        add_table('mcp_servers = { a = { command = "b" } }\n', TABLE, VALUES)


def test_what_is_not_toml_is_refused_with_its_line() -> None:
    with pytest.raises(CannotWire, match="line 2") as caught:
        add_table("a = 1\nb = \n", TABLE, VALUES)
    assert caught.value.details["line"] == 2
