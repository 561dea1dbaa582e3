"""The interface keeps its word: no question, well formed or not, gets an answer that is not documented."""

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from sadrec.serving import ServeSettings, create_app


def refused(context, response, case):
    """Malformed input is refused; schemathesis does not take 413, too long, for a refusal."""
    return None if response.status_code == 413 else negative_data_rejection(context, response, case)


CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    refused,
)


def operations(service):
    """Return the documented operations of a service by what they are called: GET /v1/recommend."""
    documented = schemathesis.openapi.from_asgi("/openapi.json", service)
    found = (result.ok() for result in documented.get_all_operations())
    return {operation.label: operation for operation in found}


@pytest.fixture(scope="module")
def served_operations(running):
    return operations(running.service)


@pytest.mark.parametrize("label", operations(create_app(ServeSettings("none"))))
def test_every_answer_is_documented(label, served_operations):
    @given(case=served_operations[label].as_strategy())
    @settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
    def ask(case):
        case.call_and_validate(checks=CHECKS)

    ask()


def test_the_interface_says_how_a_key_is_sent(tmp_path):
    from sadrec.serving.keys import new_key

    new_key(tmp_path / "keys", "ann")
    ways = {}
    for keys in (None, str(tmp_path / "keys")):
        schema = create_app(ServeSettings("none", keys=keys)).app.openapi()
        assert set(schema["components"]["securitySchemes"]) == {"bearer", "header"}
        ways[keys] = [schema["paths"][path]["get"].get("security") for path in ("/v1/describe", "/livez")]
    assert list(ways.values()) == [[None, None], [[{"bearer": []}, {"header": []}], None]]
