"""Language models of the vendors, through pydantic-ai's direct request: one question, one request, no loop.

Retries are off at every level (the vendor's SDK, the HTTP client, the library), because only the engine retries (G8).
A reply is returned as text, untouched; where the vendor enforces a JSON schema it is given the schema, elsewhere the
schema is part of the instruction. The library is imported when the first question is asked.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import importlib.util
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from everkept.errors import ConfigInvalid, ExtraMissing, Refused, Transient
from everkept.ports.models import Question, RawReply

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """What a vendor needs; its variables are those that its own tools read."""

    key: str | None
    """Variable of the API key; None where no key is needed."""
    url: str | None
    """Variable of another base URL."""
    host: str
    """Where the vendor's own prices hold."""
    model: str | None
    """The model used when only the key is set; None: a model must be named."""
    tokens_max: int | None = None
    """Limit of a reply, only where the vendor wants one; a low one keeps its SDK from streaming."""


VENDORS: Final[Mapping[str, Vendor]] = {
    "openai": Vendor(key="OPENAI_API_KEY", url="OPENAI_BASE_URL", host="api.openai.com", model="gpt-5-mini"),
    "anthropic": Vendor(
        key="ANTHROPIC_API_KEY", url="ANTHROPIC_BASE_URL", host="api.anthropic.com", model="claude-haiku-4-5",
        tokens_max=8_192,
    ),
    "google": Vendor(key="GEMINI_API_KEY", url="GOOGLE_GEMINI_BASE_URL", host="", model="gemini-3.5-flash-lite"),
    "ollama": Vendor(key=None, url="OLLAMA_HOST", host="", model=None),
}  # fmt: skip
NO_MODEL = ("none", "off")
"""Settings that keep models off although a key is there."""
_OLLAMA_URL = "http://127.0.0.1:11434"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSource:
    """Which model, where, and with which key."""

    vendor: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None


def from_env(setting: str | None, env: Mapping[str, str]) -> PydanticAIModel | None:
    """The model that the setting `vendor:model` names, e.g. `openai:gpt-5-mini` or `ollama:llama3.2`.

    Without a setting, a model is used only if exactly one vendor's key is there: its documented default. `none` turns
    models off. Raises ConfigInvalid for an unknown vendor or a missing key, ExtraMissing where the setting names a
    model and `everkept[models]` is not installed.
    """
    if setting is None or not setting.strip():
        return _default_model(env)
    if setting.strip().lower() in NO_MODEL:
        return None
    vendor, _, model = (part.strip() for part in setting.strip().partition(":"))
    if vendor not in VENDORS or not model:
        known = ", ".join(f"{name}:…" for name in VENDORS)
        raise ConfigInvalid(f"EVERKEPT_MODEL is {setting!r}; use one of {known}, or none", setting="model")
    if importlib.util.find_spec("pydantic_ai") is None:
        raise ExtraMissing("a model needs an extra: pip install 'everkept[models]'", extra="models")
    return PydanticAIModel(_source(vendor, model, env))


def _default_model(env: Mapping[str, str]) -> PydanticAIModel | None:
    with_key = [name for name, vendor in VENDORS.items() if vendor.key and env.get(vendor.key)]
    if len(with_key) != 1 or importlib.util.find_spec("pydantic_ai") is None:
        return None
    model = VENDORS[with_key[0]].model
    return PydanticAIModel(_source(with_key[0], model, env)) if model else None


def _source(name: str, model: str, env: Mapping[str, str]) -> ModelSource:
    vendor = VENDORS[name]
    api_key = env.get(vendor.key) if vendor.key else None
    if vendor.key and not api_key:
        raise ConfigInvalid(f"the model {name}:{model} needs {vendor.key}", setting="model", missing=vendor.key)
    base_url = env.get(vendor.url) if vendor.url else None
    if name == "ollama":
        base_url = _ollama_url(base_url)
    return ModelSource(vendor=name, model=model, api_key=api_key, base_url=base_url or None)


def _ollama_url(host: str | None) -> str:
    """`OLLAMA_HOST` may be a bare host; the OpenAI-shaped API lives under `/v1`."""
    url = (host or _OLLAMA_URL).rstrip("/")
    url = url if "://" in url else f"http://{url}"
    parts = urlsplit(url)
    if parts.port is None and parts.scheme == "http":
        url = f"{parts.scheme}://{parts.hostname}:11434{parts.path}"
    return url if url.endswith("/v1") else f"{url}/v1"


class PydanticAIModel:
    """A vendor's model as the port wants it. One HTTP client per event loop, closed by `close`."""

    def __init__(self, source: ModelSource) -> None:
        self._source = source
        self._open: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[Model, httpx2.AsyncClient]] = WeakKeyDictionary()

    @property
    def name(self) -> str:
        return f"{self._source.vendor}:{self._source.model}"

    @property
    def pool(self) -> str:
        """Vendor and a hash of key and address: two keys are two customers, and no key can be read from it."""
        secret = f"{self._source.api_key or ''}\n{self._source.base_url or ''}"
        return f"{self._source.vendor}:{hashlib.sha256(secret.encode()).hexdigest()[:12]}"

    async def ask(self, question: Question) -> RawReply:
        """Ask once. Raises a ModelError for everything but cancellation; an empty reply is returned as it came."""
        await asyncio.to_thread(_load, self._source.vendor)
        from everkept.models.errors_from import model_error

        try:
            async with asyncio.timeout(question.timeout_s):
                response = await self._request(question)
        except TimeoutError as error:
            raise Transient(f"no reply within {question.timeout_s:g} s", model=self.name) from error
        except Exception as error:
            raise model_error(error, secret=self._source.api_key) from error
        return self._read(response)

    def estimate_usd(self, tokens_in: int, tokens_out: int) -> float | None:
        """The vendor's list price; None where it is unknown, and for any other address than the vendor's own."""
        vendor = VENDORS[self._source.vendor]
        if self._source.vendor == "ollama":
            return 0.0
        if self._source.base_url and urlsplit(self._source.base_url).hostname != vendor.host:
            return None
        from genai_prices import Usage, calc_price

        try:
            price = calc_price(
                Usage(input_tokens=tokens_in, output_tokens=tokens_out), self._source.model,
                provider_id=self._source.vendor,
            )  # fmt: skip
        except LookupError:
            return None
        return float(price.total_price)

    async def close(self) -> None:
        """Close the connections of the running loop."""
        opened = self._open.pop(asyncio.get_running_loop(), None)
        if opened is not None:
            await opened[1].aclose()

    async def _request(self, question: Question) -> ModelResponse:
        from pydantic_ai.direct import model_request
        from pydantic_ai.messages import ModelRequest, SystemPromptPart, UserPromptPart
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.output import OutputObjectDefinition
        from pydantic_ai.settings import ModelSettings

        model = self._model()
        system, parameters = question.system, ModelRequestParameters()
        if question.schema is not None and model.profile.get("supports_json_schema_output"):
            output = OutputObjectDefinition(json_schema=question.schema, name=question.step, strict=True)
            parameters = ModelRequestParameters(output_mode="native", output_object=output)
        elif question.schema is not None:
            system = f"{system}\n\nThe JSON schema of the answer:\n{json.dumps(question.schema, ensure_ascii=False)}"
        request = ModelRequest(parts=[SystemPromptPart(content=system), UserPromptPart(content=question.user)])
        settings = ModelSettings(timeout=question.timeout_s)
        tokens_max = VENDORS[self._source.vendor].tokens_max
        if tokens_max is not None:
            settings["max_tokens"] = tokens_max
        return await model_request(model, [request], model_settings=settings, model_request_parameters=parameters)

    def _model(self) -> Model:
        loop = asyncio.get_running_loop()
        if loop not in self._open:
            self._open[loop] = _connect(self._source)
        return self._open[loop][0]

    def _read(self, response: ModelResponse) -> RawReply:
        text = response.text or ""
        if not text and response.finish_reason == "content_filter":
            raise Refused("the model refused to answer", model=self.name)
        tokens_in, tokens_out = response.usage.input_tokens, response.usage.output_tokens
        return RawReply(
            text=text, tokens_in=tokens_in, tokens_out=tokens_out, usd=self.estimate_usd(tokens_in, tokens_out)
        )


def _load(vendor: str) -> None:
    """Import what a vendor needs. It takes seconds the first time, so it is done beside the event loop."""
    for module in ("httpx2", "genai_prices", "pydantic_ai.direct", f"pydantic_ai.models.{vendor}"):
        importlib.import_module(module)


def _connect(source: ModelSource) -> tuple[Model, httpx2.AsyncClient]:
    """A model and its HTTP client, with every retry turned off."""
    import httpx2

    http = httpx2.AsyncClient(timeout=httpx2.Timeout(600.0, connect=10.0), follow_redirects=True)
    arguments: dict[str, Any] = {"api_key": source.api_key, "base_url": source.base_url}
    connect = {"openai": _openai, "anthropic": _anthropic, "google": _google, "ollama": _ollama}[source.vendor]
    return connect(source.model, http, arguments), http


def _openai(model: str, http: httpx2.AsyncClient, arguments: dict[str, Any]) -> Model:
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    client = AsyncOpenAI(max_retries=0, http_client=http, **arguments)
    return OpenAIChatModel(model, provider=OpenAIProvider(openai_client=client))


def _anthropic(model: str, http: httpx2.AsyncClient, arguments: dict[str, Any]) -> Model:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = AsyncAnthropic(max_retries=0, http_client=http, **arguments)
    return AnthropicModel(model, provider=AnthropicProvider(anthropic_client=client))


def _google(model: str, http: httpx2.AsyncClient, arguments: dict[str, Any]) -> Model:
    from google.genai.types import HttpRetryOptions
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    once = HttpRetryOptions(attempts=1)
    return GoogleModel(model, provider=GoogleProvider(http_client=http, retry_options=once, **arguments))


def _ollama(model: str, http: httpx2.AsyncClient, arguments: dict[str, Any]) -> Model:
    from openai import AsyncOpenAI
    from pydantic_ai.models.ollama import OllamaModel
    from pydantic_ai.providers.ollama import OllamaProvider

    client = AsyncOpenAI(max_retries=0, http_client=http, **(arguments | {"api_key": "ollama"}))
    return OllamaModel(model, provider=OllamaProvider(openai_client=client))
