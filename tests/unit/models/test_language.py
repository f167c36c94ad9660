"""One question is one request; whatever goes wrong comes back as a class that the engine knows (G7, G8)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import replace

import pytest
from tests.stubs.llm_server import CutBody, Fail, Hang, LlmServer, Reply, Reset, Say

from everkept.errors import ConfigInvalid, ModelError, Permanent, ProviderDown, RateLimited, Refused, Transient
from everkept.models.language import PydanticAIModel, from_env
from everkept.models.prompts.questions import build_fold_question
from everkept.ports.models import Question, RawReply

QUESTION = build_fold_question(None, ["Ana moved."], chars_max=100, timeout_s=30)


def model_at(server: LlmServer) -> PydanticAIModel:
    made = from_env("openai:gpt-5-mini", {"OPENAI_API_KEY": "sk-secret-123", "OPENAI_BASE_URL": server.url})
    assert made is not None
    return made


def ask(server: LlmServer, question: Question = QUESTION) -> RawReply:
    async def run() -> RawReply:
        model = model_at(server)
        try:
            return await model.ask(question)
        finally:
            await model.close()

    return asyncio.run(run())


def test_reply_comes_back_untouched_with_its_usage() -> None:
    with LlmServer([Say(text='Sure: {"summary": "Ana moved."}')]) as server:
        assert ask(server) == RawReply(text='Sure: {"summary": "Ana moved."}', tokens_in=100, tokens_out=20, usd=None)
    assert [(asked.step, asked.path) for asked in server.asked] == [("fold", "/v1/chat/completions")]
    assert server.asked[0].authorization == "Bearer sk-secret-123"
    assert server.asked[0].body["response_format"]["json_schema"]["schema"]["required"] == ["summary"]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Fail(status=500), Transient),
        (Fail(status=503), Transient),
        (Fail(status=408), Transient),
        (Reset(), Transient),
        (CutBody(), Transient),
        (Fail(status=429, code="rate_limit_exceeded"), RateLimited),
        (Fail(status=429, code="insufficient_quota"), ProviderDown),
        (Fail(status=401, code="invalid_api_key", message="wrong key sk-secret-123"), ProviderDown),
        (Fail(status=402), ProviderDown),
        (Fail(status=403, message="this key has no permission"), ProviderDown),
        (Fail(status=404, code="model_not_found"), ProviderDown),
        (Fail(status=404), ProviderDown),
        (Fail(status=400, code="context_length_exceeded"), Permanent),
        (Fail(status=413), Permanent),
        (Fail(status=422), Permanent),
        (Fail(status=400, code="content_policy_violation"), Refused),
        (Say(refusal="I cannot help with that."), Refused),
    ],
)
def test_failure_is_one_request_and_one_class(reply: Reply, expected: type[ModelError]) -> None:
    with LlmServer([reply]) as server:
        with pytest.raises(ModelError) as caught:
            ask(server)
        assert type(caught.value) is expected
        assert "sk-secret" not in str(caught.value)
        assert server.calls() == 1


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("7", 7.0), ("1.5", 1.5), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0), ("315360000", 315_360_000.0),
        ("soon", None), ("-5", None), ("nan", None), ("inf", None),
    ],
)  # fmt: skip
def test_rate_limit_says_how_long_to_wait(header: str, expected: float | None) -> None:
    with LlmServer([Fail(status=429, headers={"retry-after": header})]) as server, pytest.raises(RateLimited) as caught:
        ask(server)
    assert caught.value.retry_after_s == expected


def test_rate_limit_without_a_time_is_still_one() -> None:
    with LlmServer([Fail(status=429)]) as server, pytest.raises(RateLimited) as caught:
        ask(server)
    assert caught.value.retry_after_s is None


def test_hanging_call_ends_at_its_timeout() -> None:
    with LlmServer([Hang()]) as server, pytest.raises(Transient):
        ask(server, replace(QUESTION, timeout_s=2.0))
    assert server.calls() == 1


def test_cancelled_call_is_cancelled_and_not_an_error() -> None:
    async def run(server: LlmServer) -> None:
        model = model_at(server)
        task = asyncio.create_task(model.ask(QUESTION))
        await asyncio.to_thread(server.wait_for_call)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await model.close()

    with LlmServer([Hang()]) as server:
        asyncio.run(run(server))


def test_no_setting_takes_the_only_key_there_is() -> None:
    only = from_env(None, {"OPENAI_API_KEY": "k"})
    assert only is not None
    assert only.name == "openai:gpt-5-mini"
    assert from_env(None, {}) is None
    assert from_env("", {"OPENAI_API_KEY": "k", "GEMINI_API_KEY": "g"}) is None
    assert from_env("none", {"OPENAI_API_KEY": "k"}) is None


@pytest.mark.parametrize("setting", ["gpt-5-mini", "openai:", "acme:large", ":x"])
def test_unknown_setting_is_an_error(setting: str) -> None:
    with pytest.raises(ConfigInvalid, match=r"openai:…"):
        from_env(setting, {"OPENAI_API_KEY": "k"})


def test_missing_key_is_named() -> None:
    with pytest.raises(ConfigInvalid, match="ANTHROPIC_API_KEY"):
        from_env("anthropic:claude-haiku-4-5", {})


def test_pool_tells_keys_apart_and_hides_them() -> None:
    one, other = (from_env("openai:gpt-5-mini", {"OPENAI_API_KEY": key}) for key in ("key-one", "key-two"))
    assert one is not None
    assert other is not None
    assert one.pool != other.pool
    assert one.pool.startswith("openai:")
    assert "key-one" not in one.pool


def test_price_is_the_vendors_and_unknown_elsewhere() -> None:
    own = from_env("openai:gpt-5-mini", {"OPENAI_API_KEY": "k"})
    other = from_env("openai:gpt-5-mini", {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"})
    unknown = from_env("openai:never-heard-of", {"OPENAI_API_KEY": "k"})
    assert own is not None
    assert other is not None
    assert unknown is not None
    assert (own.estimate_usd(1_000_000, 0) or 0) > 0
    assert other.estimate_usd(1_000_000, 0) is None
    assert unknown.estimate_usd(1_000_000, 0) is None


def test_ollama_needs_no_key_and_accepts_a_bare_host() -> None:
    made = from_env("ollama:llama3.2", {"OLLAMA_HOST": "box"})
    assert made is not None
    assert (made.name, made.estimate_usd(1, 1)) == ("ollama:llama3.2", 0.0)


def test_importing_the_package_loads_no_vendor() -> None:
    code = "import sys, everkept.models, everkept.models.language; print('pydantic_ai' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
