"""Credentials by where they stand: in an address, a header, the arguments of a command, a file of logins.

And tokens by how they begin, where gitleaks has no rule. Group 1 of each pattern is the secret.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from everkept.capture.redaction.patterns import EngineName, compiled
from everkept.capture.redaction.values import (
    has_digit,
    is_basic_auth,
    is_placeholder,
    is_scrambled,
    is_words,
    looks_random,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialRule:
    """One pattern, and what its group 1 must be besides."""

    id: str
    keywords: tuple[str, ...]
    regex: str
    is_secret: Callable[[bytes], bool]

    def find(self, image: bytes, engine: EngineName) -> list[tuple[int, int]]:
        """Where its secrets are."""
        spans = (match.span(1) for match in compiled(self.regex, engine).finditer(image))
        return [(start, end) for start, end in spans if self.is_secret(image[start:end])]


def _given(value: bytes) -> bool:
    """Anything but a placeholder."""
    return not is_placeholder(value)


def _random(value: bytes) -> bool:
    return looks_random(value)


def _long_random(value: bytes) -> bool:
    return looks_random(value, chars_min=16, bits_min=3.0)


def _token(value: bytes) -> bool:
    """Long words are tokens where only a token can stand; short ones are if they have a digit."""
    return not is_placeholder(value) and (
        has_digit(value) or is_scrambled(value) or (len(value) >= 20 and not is_words(value))
    )


def _cookies(value: bytes) -> bool:
    return b"=" in value and looks_random(value, chars_min=16, bits_min=3.0)


def _address_token(value: bytes) -> bool:
    return looks_random(value, chars_min=20, bits_min=3.0)


_TOKEN_STARTS: Final = (
    r"sk-(?:or-v1-|ant-[a-z0-9]{2,10}-|proj-|svcacct-|admin-|lf-)?[A-Za-z0-9_-]{20,}",
    r"(?:gsk_|r8_|re_|fw_|fc-|tvly-|jina_|pcsk_|nvapi-|xai-|cpk_|vck_|dckr_pat_|dckr_oat_)[A-Za-z0-9_-]{20,}",
    r"(?:sbp_|sb_secret_|whsec_|tskey-[a-z]+-|lsv2_(?:pt|sk)_|ph[cxs]_|figd_|figo_|ATBB|ATCTT3)[A-Za-z0-9_=-]{20,}",
    r"ya29\.[A-Za-z0-9_-]{20,}",
    r"1//0[A-Za-z0-9_-]{30,}",
    r"GOCSPX-[A-Za-z0-9_-]{20,60}",
    r"EAA[A-Za-z0-9]{60,}",
    r"pit-[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}",
    r"xox[a-z]-[A-Za-z0-9-]{20,}",
    r"gh[pousr]_[A-Za-z0-9_]{30,}",
    r"\d{8,10}:AA[A-Za-z0-9_-]{32,35}",
    r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}",
)
_TOKEN_MARKS: Final = tuple(
    "sk- gsk_ r8_ re_ fw_ fc- tvly- jina_ pcsk_ nvapi- xai- cpk_ vck_ dckr_ sbp_ sb_secret_ whsec_ tskey- lsv2_ phc_"
    " phx_ phs_ figd_ figo_ atbb atctt3 ya29. 1//0 gocspx- eaa pit- xox ghp_ gho_ ghu_ ghs_ ghr_ :aa".split()
)
_HEADER_NAMES: Final = (
    r"x-[a-z-]{0,30}(?:token|key|secret|auth|password)|api-key|apikey|(?:private|job|deploy)-token|circle-token"
    r"|dd-(?:api|application)-key|ocp-apim-subscription-key|x-functions-key|authentication"
)
_PARAMETERS: Final = (
    r"access_token|refresh_token|id_token|auth_token|session_token|api_?key|apikey|key|token|client_secret|secret"
    r"|passw(?:or)?d|sig|signature|x-amz-(?:signature|security-token|credential)|x-goog-(?:signature|credential)|code|auth"
)
_FLAGS: Final = (
    r"(?:[a-z]+-)*(?:password|passwd|passphrase|pass|token|secret|api-?key|access-?key|secret-?key|private-?key|creds)"
)
_VALUE: Final = r"""[^\s"'`<>|;&]"""

CREDENTIAL_RULES: Final = (
    CredentialRule(
        id="url-password",
        keywords=("://",),
        regex=r"""://[^\s:/@"'<>`\x01]{0,100}:([^\s/"'<>`?#]{2,})@[\w\[]""",
        is_secret=_given,
    ),
    CredentialRule(
        id="url-token",
        keywords=("://",),
        regex=r"""(?:https?|wss?|ftps?)://([A-Za-z0-9_~.%+=-]{20,})(?::(?:x-oauth-basic)?)?@[\w\[]""",
        is_secret=_address_token,
    ),
    CredentialRule(
        id="url-parameter",
        keywords=(
            "token=",
            "key=",
            "secret=",
            "password=",
            "passwd=",
            "sig=",
            "signature=",
            "credential=",
            "code=",
            "auth=",
        ),
        regex=rf"""(?i)[?&;](?:{_PARAMETERS})=([^\s&"'<>#`;,)\]{{}}]{{8,}})""",
        is_secret=_long_random,
    ),
    CredentialRule(
        id="basic-auth",
        keywords=("basic",),
        regex=r"""(?i)\bbasic\s{1,5}["']?([A-Za-z0-9+/]{6,}={0,2})""",
        is_secret=is_basic_auth,
    ),
    CredentialRule(
        id="docker-auth",
        keywords=("auth",),
        regex=r"""(?i)["']?_?auth["']?\s{0,5}[:=]\s{0,5}["']?([A-Za-z0-9+/]{8,}={0,2})""",
        is_secret=is_basic_auth,
    ),
    CredentialRule(
        id="bearer-token",
        keywords=("bearer", "token "),
        regex=r"""(?i)\b(?:bearer|authorization\s{0,3}["']?\s{0,3}[:=]\s{0,3}["']?(?:api)?(?:token|key))\s{1,5}["']?([A-Za-z0-9._~+/=:-]{8,})""",
        is_secret=_random,
    ),
    CredentialRule(
        id="auth-header",
        keywords=("authorization",),
        regex=r"""(?i)\bauthorization\s{0,3}["']?\s{0,3}[:=]\s{0,3}["']?(?:(?:hmac|apikey|api-key|key|signature|ssws|genie\s?key|splunk|aws)\s{1,3})?([A-Za-z0-9._~+/=:-]{12,})""",
        is_secret=_long_random,
    ),
    CredentialRule(
        id="header",
        keywords=("x-", "api-key", "apikey", "-token", "dd-ap", "ocp-apim", "authentication"),
        regex=rf"""(?i)(?:^|[^\w-])(?:{_HEADER_NAMES})\s{{0,3}}["']?\s{{0,3}}:\s{{0,3}}["']?([^\s"'`,;<>)]{{8,}})""",
        is_secret=_random,
    ),
    CredentialRule(
        id="cookie",
        keywords=("cookie",),
        regex=r"""(?i)\b(?:set-)?cookie["']?\s{0,3}:\s{0,3}["']?([^\s"'`=;]{1,80}=[^"'`\r\n]{8,})""",
        is_secret=_cookies,
    ),
    CredentialRule(
        id="command-argument",
        keywords=("-pass", "-token", "-secret", "-api", "-access", "-private", "-key", "-cred"),
        regex=rf"""(?i)[\s"'`(\[]--?(?:{_FLAGS})(?:=|["']?,?\s{{1,5}})["']?([^\s"'`<>|;&-]{_VALUE}{{3,}})""",
        is_secret=_token,
    ),
    CredentialRule(
        id="command-password",
        keywords=("mysql", "mariadb", "sshpass", "login", "mongo", "redis-cli", "ldap", "smbclient", "kinit", "unzip"),
        regex=r"""\b(?:(?:mysql|mariadb)\w*\b[^\n|;&]{0,300}?\s-p"""
        r"""|(?:sshpass|(?:docker|podman|helm registry|az|oc|crane) login|mongo\w*|redis-cli|unzip|ldap\w+)\b"""
        rf"""[^\n|;&]{{0,300}}?\s-[paPw]\s{{0,3}})["']?({_VALUE}{{4,}})""",
        is_secret=_token,
    ),
    CredentialRule(
        id="command-input",
        keywords=("-stdin", "sudo", "pass:"),
        regex=r"""(?:\becho\s{1,3}(?:-n\s{1,3})?["']?|-pass(?:in|out)?\s{1,3}pass:|\bsudo\s{1,3}-S[^\n|]{0,80}<<<\s{0,3}["']?)"""
        r"""([^\s"'|$]{4,})(?:["']?\s{0,3}\|\s{0,3}(?:sudo\s{1,3}-S|[^\n|]{0,80}--password-stdin)|\s|["']|$)""",
        is_secret=_token,
    ),
    CredentialRule(
        id="dsn-password",
        keywords=("@tcp(", "@unix("),
        regex=r"""[\w-]{1,64}:([^\s@/"'`]{3,})@(?:tcp|unix)\(""",
        is_secret=_given,
    ),
    CredentialRule(
        id="curl-user",
        keywords=("curl", "wget", "http"),
        regex=r"""\b(?:curl|wget|https?\s)[^\n|;]{0,500}?\s(?:-u|--user|-a|--auth|--proxy-user|-U)(?:=|\s{0,3})["']?[^\s"':]{0,100}:([^\s"'`|;&]{3,})""",
        is_secret=_given,
    ),
    CredentialRule(
        id="netrc",
        keywords=("machine", "login"),
        regex=r"""\b(?:machine\s{1,5}\S+|default)\s{1,20}login\s{1,5}\S+\s{1,20}password\s{1,5}(\S+)""",
        is_secret=_given,
    ),
    CredentialRule(
        id="api-token",
        keywords=_TOKEN_MARKS,
        regex=rf"""(?:^|[^A-Za-z0-9_-])({"|".join(_TOKEN_STARTS)})""",
        is_secret=_long_random,
    ),
)
