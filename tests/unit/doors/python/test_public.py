from __future__ import annotations

import subprocess
import sys

import pytest

import everkept


def test_every_public_name_is_there() -> None:
    for name in everkept.__all__:
        assert getattr(everkept, name) is not None
    assert set(everkept.__all__) <= set(dir(everkept))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Memroy"):
        _ = everkept.Memroy


def test_importing_the_package_imports_no_door_and_nothing_heavy() -> None:
    script = (
        "import everkept, sys; print(*(n for n in sys.modules if n.startswith('everkept.') or n in HEAVY), sep=',')"
    )
    heavy = "HEAVY = {'pydantic', 'sqlalchemy', 'numpy', 'fastapi', 'httpx2', 'asyncio'}; "
    done = subprocess.run([sys.executable, "-c", heavy + script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_the_python_door_needs_neither_http_nor_the_server() -> None:
    loaded = "[name for name in ('fastapi', 'httpx2', 'sqlalchemy') if name in sys.modules]"
    script = f"import everkept, sys; everkept.Memory; print({loaded})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_memory_elsewhere_needs_neither_the_store_nor_the_analyser() -> None:
    loaded = "[name for name in ('sqlalchemy', 'numpy', 'structlog') if name in sys.modules]"
    script = (
        "import sys; from everkept import Memory; memory = Memory.connect('http://127.0.0.1:1'); memory.close(); "
        f"print({loaded})"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
