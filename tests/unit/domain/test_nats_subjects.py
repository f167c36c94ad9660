from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everkept.domain.nats_subjects import all_subjects, project_of, subject_of
from everkept.errors import InvalidInput

NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=40).filter(
    lambda name: not name.startswith("default/")  # the first workspace is never named
)


def test_a_subject_names_workspace_project_and_direction() -> None:
    assert subject_of("everkept", "default", "events") == "everkept.default.default.events"
    assert subject_of("everkept", "research/web", "changes") == "everkept.research.web.changes"
    assert subject_of("e", "acme.eu *>", "events") == "e.default.acme%2Eeu%20%2A%3E.events"
    assert all_subjects("everkept", "events") == "everkept.*.*.events"


@given(NAMES)
def test_every_name_of_a_project_is_one_token_and_comes_back(name: str) -> None:
    subject = subject_of("everkept", name, "events")
    assert subject.count(".") == 3
    assert subject.isascii()
    assert not set(subject) & set(" *>\t")
    assert project_of("everkept", subject) == name


@pytest.mark.parametrize("subject", ["other.default.work.events", "everkept.work.events", "everkept.a.b.c.events"])
def test_a_subject_of_another_shape_is_refused(subject: str) -> None:
    with pytest.raises(InvalidInput):
        project_of("everkept", subject)
