"""A few examples for each operation, made from the document: nothing may end in a 5xx or in what is not documented."""

from __future__ import annotations

import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import checks
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.stubs.door_client import DoorClient

ADMIN = {"Authorization": "Bearer the-operators-own-key"}
DOOR = DoorClient(EVERKEPT_SERVER__ALLOWED_HOSTS="testserver", EVERKEPT_ADMIN_KEY="the-operators-own-key")
schema = schemathesis.openapi.from_asgi("/openapi.json", DOOR.app, headers=ADMIN)
CHECKS = [
    checks.not_a_server_error,
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
]


@schema.parametrize()
@settings(
    max_examples=5,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_operation_conforms(case: schemathesis.Case) -> None:
    case.call_and_validate(checks=CHECKS, headers=ADMIN)


def test_every_schema_has_a_name_of_its_own() -> None:
    """Two of one name are told apart by the modules that they lie in, which means nothing to who reads the document."""
    assert [name for name in schema.raw_schema["components"]["schemas"] if "__" in name] == []
