"""A labelled corpus for redaction: made-up secrets of many kinds in the places where agents meet them, and more.

No secret is written in this file: each is put together when the corpus is made, from a seed, so that the same seed
makes the same corpus and no scanner of a hosting site takes one for a live key. The rest is text without secrets.
"""

from __future__ import annotations

import base64
import json
import random
import string
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

LOWER_HEX = "0123456789abcdef"
DIGITS = string.digits
ALNUM = string.ascii_letters + string.digits
BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
URL_SAFE = ALNUM + "-_"
BASE64 = ALNUM + "+/"
SYMBOLS = ALNUM + "!@#%^*-_=+.?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A text and the secrets that are in it."""

    kind: str
    text: str
    secrets: tuple[str, ...]


Make = Callable[[random.Random], str]


Piece = str | tuple[str, int]


def _of(*pieces: Piece) -> Make:
    """A token made of fixed pieces and (alphabet, length) ones."""

    def make(rng: random.Random) -> str:
        return "".join(p if isinstance(p, str) else "".join(rng.choices(p[0], k=p[1])) for p in pieces)

    return make


def _jwt(rng: random.Random) -> str:
    header = base64.urlsafe_b64encode(json.dumps({"alg": "HS256", "typ": "JWT"}).encode()).decode().rstrip("=")
    claims = {"sub": str(rng.randrange(10**9)), "iat": rng.randrange(10**9)}
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"{header}.{body}.{_of((URL_SAFE, 43))(rng)}"


TOKENS: dict[str, Make] = {
    "github-pat": _of("gh", "p_", (ALNUM, 36)),
    "github-oauth": _of("gh", "o_", (ALNUM, 36)),
    "github-app": _of("gh", "s_", (ALNUM, 36)),
    "github-fine-grained": _of("github", "_pat_", (ALNUM, 22), "_", (ALNUM, 59)),
    "gitlab-pat": _of("gl", "pat-", (URL_SAFE, 20)),
    "gitlab-runner": _of("gl", "rt-", (URL_SAFE, 20)),
    "aws-access-key": _of("AK", "IA", (BASE32, 16)),
    "aws-temporary-key": _of("AS", "IA", (BASE32, 16)),
    "google-api-key": _of("AI", "za", (URL_SAFE, 35)),
    "google-oauth": _of("ya", "29.", (URL_SAFE, 120)),
    "google-refresh": _of("1/", "/0", (URL_SAFE, 60)),
    "google-client-secret": _of("GOC", "SPX-", (URL_SAFE, 28)),
    "openai-project": _of("sk-", "proj-", (URL_SAFE, 74), "T3Blbk", "FJ", (URL_SAFE, 74)),
    "openai-legacy": _of("sk", "-", (ALNUM, 20), "T3Blbk", "FJ", (ALNUM, 20)),
    "anthropic": _of("sk-", "ant-", "api03-", (URL_SAFE, 93), "AA"),
    "anthropic-oauth": _of("sk-", "ant-", "oat01-", (URL_SAFE, 93), "AA"),
    "openrouter": _of("sk-", "or-", "v1-", (LOWER_HEX, 64)),
    "groq": _of("gs", "k_", (ALNUM, 52)),
    "huggingface": _of("h", "f_", (string.ascii_letters, 34)),
    "replicate": _of("r", "8_", (ALNUM, 37)),
    "perplexity": _of("pp", "lx-", (ALNUM, 48)),
    "xai": _of("xa", "i-", (ALNUM, 80)),
    "slack-bot": _of("xo", "xb-", (DIGITS, 12), "-", (DIGITS, 12), "-", (ALNUM, 24)),
    "slack-user": _of("xo", "xp-", (DIGITS, 12), "-", (DIGITS, 12), "-", (DIGITS, 12), "-", (ALNUM, 32)),
    "slack-app": _of("xa", "pp-1-", (BASE32, 11), "-", (DIGITS, 13), "-", (LOWER_HEX, 64)),
    "slack-webhook": _of("https://hooks.sl", "ack.com/services/T", (BASE32, 10), "/B", (BASE32, 10), "/", (ALNUM, 24)),
    "stripe-live": _of("sk", "_live_", (ALNUM, 24)),
    "stripe-restricted": _of("rk", "_live_", (ALNUM, 40)),
    "stripe-webhook": _of("wh", "sec_", (ALNUM, 32)),
    "sendgrid": _of("S", "G.", (URL_SAFE, 22), ".", (URL_SAFE, 43)),
    "twilio": _of("S", "K", (LOWER_HEX, 32)),
    "npm": _of("np", "m_", (ALNUM, 36)),
    "pypi": _of("py", "pi-AgEIcHlw", "aS5vcmc", (URL_SAFE, 90)),
    "rubygems": _of("ruby", "gems_", (LOWER_HEX, 48)),
    "docker": _of("dck", "r_pat_", (URL_SAFE, 27)),
    "digitalocean": _of("do", "p_v1_", (LOWER_HEX, 64)),
    "databricks": _of("da", "pi", (LOWER_HEX, 32)),
    "doppler": _of("dp", ".pt.", (ALNUM, 43)),
    "grafana": _of("gl", "sa_", (ALNUM, 32), "_", (LOWER_HEX, 8)),
    "linear": _of("lin", "_api_", (ALNUM, 40)),
    "notion": _of("nt", "n_", (DIGITS, 11), (ALNUM, 35)),
    "postman": _of("PM", "AK-", (LOWER_HEX, 24), "-", (LOWER_HEX, 34)),
    "pulumi": _of("pu", "l-", (LOWER_HEX, 40)),
    "planetscale": _of("pscale", "_tkn_", (URL_SAFE, 43)),
    "shopify": _of("sh", "pat_", (LOWER_HEX, 32)),
    "square": _of("sq0", "atp-", (URL_SAFE, 22)),
    "supabase": _of("sb", "p_", (LOWER_HEX, 40)),
    "tailscale": _of("tsk", "ey-auth-", (ALNUM, 12), "-", (ALNUM, 32)),
    "telegram": _of((DIGITS, 10), ":A", "A", (URL_SAFE, 33)),
    "vault": _of("hv", "s.", (URL_SAFE, 95)),
    "age": _of("AGE-SECRET", "-KEY-1", ("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)),
    "azure-client-secret": _of((ALNUM, 3), "8Q", "~", (ALNUM, 34)),
    "langsmith": _of("lsv2", "_pt_", (LOWER_HEX, 32), "_", (LOWER_HEX, 10)),
    "pinecone": _of("pc", "sk_", (ALNUM, 6), "_", (ALNUM, 60)),
    "jwt": _jwt,
}
"""Tokens that their own shape gives away, wherever they stand."""

TOKEN_SETTINGS = (
    "{0}",
    "export GITHUB_TOKEN={0}",
    "$ echo $TOKEN\n{0}\n$ ",
    '{{"type": "tool_result", "content": "{0}"}}',
    '{{\\"env\\": {{\\"TOKEN\\": \\"{0}\\"}}}}',
    "line one\\n{0}\\nline three",
    "const client = new Client('{0}');",
    'client = Client(\n    token="{0}",\n    timeout=30,\n)',
    "2026-05-01T10:00:00Z DEBUG http.client: send: token {0}, retry 2",
    "请把令牌{0}写进配置文件，然后重启服务。",
    "トークンは「{0}」です。",
    "الرمز هو {0}، احفظه في مكان آمن",
    "토큰:{0}입니다",
    "Ключ «{0}» больше не действует.",
    "\x1b[32m{0}\x1b[0m",
    "\\u001b[1m{0}\\u001b[0m done",
    "value\x00{0}\x00PATH=/usr/bin",
    "use `{0}` (without quotes), please.",
    "| name | token |\n| ci | {0} |",
    "<token>{0}</token>",
    "+  token: {0}\n-  token: old",
    "curl -s 'https://api.example.com/v1/items?page=2' -H 'X-Custom: {0}'",
    "    12\t{0}",
    "token={0}&page=2",
)


def _password(rng: random.Random) -> str:
    return rng.choice((_of((ALNUM, 10)), _of((SYMBOLS, 14)), _word_password))(rng)


def _word_password(rng: random.Random) -> str:
    words = ("dragon", "monkey", "winter", "harbour", "velvet", "copper", "falcon", "orchid")
    return f"{rng.choice(words)}{rng.choice('-_!.')}{rng.choice(words)}{rng.randrange(10, 9999)}"


def _plain_password(rng: random.Random) -> str:
    return _of((ALNUM, 12))(rng)


def _key(rng: random.Random) -> str:
    return rng.choice((_of((ALNUM, 32)), _of((LOWER_HEX, 32)), _of((BASE64, 40)), _of((URL_SAFE, 43))))(rng)


def _uuid(rng: random.Random) -> str:
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def _basic(rng: random.Random) -> str:
    return base64.b64encode(f"admin:{_plain_password(rng)}".encode()).decode()


NAMED_SETTINGS: tuple[tuple[str, Make, str], ...] = (
    ("env-password", _password, "DB_PASSWORD={0}"),
    ("env-password", _password, 'export PGPASSWORD="{0}"\npsql -h db'),
    ("env-password", _password, "MYSQL_ROOT_PASSWORD='{0}' docker compose up"),
    ("env-password", _password, "REDIS_PASS={0}\nREDIS_PORT=6379"),
    ("env-key", _key, "OPENAI_API_KEY={0}"),
    ("env-key", _key, "AWS_SECRET_ACCESS_KEY={0}\nAWS_REGION=eu-west-1"),
    ("env-key", _key, 'SECRET_KEY="{0}"'),
    ("env-key", _key, "-e STRIPE_SECRET_KEY={0} -p 80:80"),
    ("env-key", _key, "set AZURE_CLIENT_SECRET={0}\r\n"),
    ("env-key", _key, "$env:CI_JOB_TOKEN = '{0}'"),
    ("env-key", _uuid, "HEROKU_API_KEY={0}"),
    ("env-key", _key, "ENV AUTH_TOKEN={0}"),
    ("json", _password, '{{"user": "admin", "password": "{0}"}}'),
    ("json", _password, '{{\\"db\\": {{\\"password\\": \\"{0}\\"}}}}'),
    ("json", _password, '{{\\\\\\"password\\\\\\": \\\\\\"{0}\\\\\\"}}'),
    ("json", _key, '"SecretAccessKey": "{0}",'),
    ("json", _key, '{{"apiKey":"{0}","id":7}}'),
    ("json", _key, '{{"client_secret": "{0}"}}'),
    ("json", _key, '{{"access_token":"{0}","expires_in":3600}}'),
    ("json", _key, '{{"refresh_token" : "{0}"}}'),
    ("json", _key, '{{"name": "API_TOKEN", "value": "{0}"}}'),
    ("yaml", _password, "database:\n  user: app\n  password: {0}\n"),
    ("yaml", _password, '  password: "{0}"  # rotate'),
    ("yaml", _key, "- name: API_SECRET\n  value: {0}\n"),
    ("yaml", _key, "stringData:\n  token: {0}\n"),
    ("ini", _password, "[db]\npassword = {0}\nhost = localhost"),
    ("ini", _key, "aws_secret_access_key = {0}"),
    ("ini", _key, "//registry.npmjs.org/:_authToken={0}"),
    ("properties", _password, "spring.datasource.password={0}"),
    ("toml", _key, 'api_key = "{0}"'),
    ("xml", _plain_password, "<password>{0}</password>"),
    ("xml", _plain_password, '<add key="Password" value="{0}" />'),
    ("code", _password, 'password = "{0}"'),
    ("code", _password, "conn = psycopg.connect(host='db', password='{0}')"),
    ("code", _key, 'API_KEY: Final = "{0}"'),
    ("code", _key, "const apiKey = '{0}';"),
    ("code", _key, 'let api_key: &str = "{0}";'),
    ("code", _key, 'os.environ["API_KEY"] = "{0}"'),
    ("code", _key, "os.environ.setdefault('SECRET_KEY', '{0}')"),
    ("code", _key, 'private static final String CLIENT_SECRET = "{0}";'),
    ("code", _key, "clientSecret: '{0}',"),
    ("code", _key, 'auth_token := "{0}"'),
    ("code", _key, "'secret' => '{0}',"),
    ("connection-string", _plain_password, "Server=db;Database=app;User Id=sa;Password={0};Encrypt=yes"),
    ("connection-string", _key, "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={0};EndpointSuffix=x"),
    ("url", _plain_password, "postgres://app:{0}@db.internal:5432/prod"),
    ("url", _plain_password, "DATABASE_URL=mysql://root:{0}@127.0.0.1/app"),
    ("url", _plain_password, "redis://:{0}@cache:6379/0"),
    ("url", _plain_password, "git clone https://ci-bot:{0}@git.example.com/team/app.git"),
    ("url", _key, "https://oauth2:{0}@gitlab.example.com/x.git"),
    ("url", _plain_password, "连接mongodb+srv://admin:{0}@cluster0.mongodb.net/test失败"),
    ("url", _of((ALNUM, 40)), "https://{0}@github.example.com/team/app.git"),
    ("url-parameter", _of((ALNUM, 40)), "GET /v1/items?api_key={0}&page=2 200"),
    ("url-parameter", _of((LOWER_HEX, 64)), "https://s3.example.com/x?X-Amz-Date=2026&X-Amz-Signature={0}"),
    ("url-parameter", _of((ALNUM, 43)), "https://acc.blob.example.net/c/f?sv=2026-01-01&sig={0}&se=x"),
    ("header", _basic, "Authorization: Basic {0}"),
    ("header", _basic, "curl -H 'authorization: basic {0}' https://api.example.com"),
    ("header", _basic, '{{\\"Authorization\\": \\"Basic {0}\\"}}'),
    ("header", _key, "Authorization: Bearer {0}"),
    ("header", _key, "> authorization: Bearer {0}\r\n> accept: */*"),
    ("header", _key, "Authorization: token {0}"),
    ("header", _key, "Authorization: {0}"),
    ("header", _key, "headers = {{'Authorization': 'Bearer {0}'}}"),
    ("header", _key, "X-Api-Key: {0}"),
    ("header", _key, 'curl --header "PRIVATE-TOKEN: {0}" https://gitlab.example.com'),
    ("header", _key, "X-Amz-Security-Token: {0}"),
    ("header", _key, '"x-auth-token": "{0}"'),
    ("header", _key, "Cookie: sessionid={0}; theme=dark"),
    ("header", _key, "Set-Cookie: sid={0}; Path=/; HttpOnly"),
    ("command", _password, "mysql -u root -p{0} app"),
    ("command", _password, "sshpass -p '{0}' ssh root@host"),
    ("command", _plain_password, "curl -u admin:{0} https://api.example.com"),
    ("command", _plain_password, "curl \\\n  -X POST \\\n  --user 'admin:{0}' \\\n  https://api.example.com"),
    ("command", _password, "mytool login --username me --password {0}"),
    ("command", _key, "gh-tool --token={0} sync"),
    ("command", _key, 'deploy --api-key "{0}"'),
    ("command", _plain_password, "docker login -u me -p {0} registry.example.com"),
    ("command", _plain_password, "redis-cli -h cache -a {0} ping"),
    ("netrc", _plain_password, "machine api.example.com login me password {0}"),
    ("docker-config", _basic, '{{"auths": {{"registry.example.com": {{"auth": "{0}"}}}}}}'),
    ("prose", _password, "The password is {0} and the port is 5432"),
    ("prose", _plain_password, "the admin password: {0}"),
    ("prose", _plain_password, "管理员密码：{0}，请妥善保管。"),
    ("prose", _plain_password, "パスワード: {0} です"),
    ("prose", _plain_password, "Пароль: {0}"),
    ("prose", _plain_password, "كلمة المرور: {0}"),
    ("prose", _key, "我的api_key是：api_key={0}。谢谢"),
)
"""Secrets that their place gives away: (kind, what is there, the place)."""

HELD_OUT_SETTINGS: tuple[tuple[Make, str], ...] = (
    (_password, '--data \'{{"username":"a","password":"{0}"}}\''),
    (_key, '-H "X-API-KEY:{0}"'),
    (_key, "heroku config:set STRIPE_KEY={0} -a app"),
    (_key, "aws configure set aws_secret_access_key {0}"),
    (_key, "npm config set //registry.npmjs.org/:_authToken {0}"),
    (_password, "kubectl create secret generic x --from-literal=password={0}"),
    (_key, "gh secret set DEPLOY_TOKEN --body {0}"),
    (_password, "vault kv put secret/x password={0}"),
    (_plain_password, "openssl rsa -in k -passin pass:{0}"),
    (_password, 'psql "host=db user=app password={0} dbname=x"'),
    (_plain_password, "jdbc:mysql://db/app?user=a&password={0}&ssl=true"),
    (_plain_password, "ldapsearch -x -D cn=admin -w {0} -b dc=x"),
    (_password, 'Password: "{0}",'),
    (_password, "define('DB_PASSWORD', '{0}');"),
    (_key, "define('AUTH_KEY',         '{0}');"),
    (_of((LOWER_HEX, 128)), "secret_key_base: {0}"),
    (_key, "+ export TOKEN={0}"),
    (_password, "{{'password': '{0}', 'user': 'x'}}"),
    (_password, ":password => '{0}'"),
    (_password, ':password "{0}"'),
    (_key, "setx API_KEY {0}"),
    (_key, "set -gx GITHUB_TOKEN {0}"),
    (_plain_password, "username=a&password={0}&x=1"),
    (_plain_password, "CREATE USER app IDENTIFIED BY '{0}';"),
    (_plain_password, "ALTER USER app WITH PASSWORD '{0}';"),
    (_password, 'config.setPassword("{0}");'),
    (_key, "process.env.API_KEY = '{0}'"),
    (_key, "apiKey={0}"),
    (_key, '"api-key": "{0}"'),
    (_key, "API key: {0}"),
    (_key, "api key is {0}"),
    (_key, "Your access token: {0}"),
    (_key, "token: {0}"),
    (_key, "Secret: {0}"),
    (_key, '"privateKey": "{0}"'),
    (_key, 'private_key = "0x{0}"'),
    (_of((LOWER_HEX, 64)), "PRIVATE_KEY=0x{0}"),
    (_key, '    "encryptionKey": "{0}",'),
    (_key, "ENCRYPTION_KEY: {0}"),
    (_key, "webhook_secret: {0}"),
    (_key, 'jwtSecret: "{0}"'),
    (_key, "JWT_SECRET={0}"),
    (_password, "admin_password: {0}"),
    (_password, "ANSIBLE_BECOME_PASS: {0}"),
    (_password, "ansible_ssh_pass={0}"),
    (_password, "root:{0}@tcp(db:3306)/app"),
    (_plain_password, "amqp://guest:{0}@mq:5672/"),
    (_plain_password, 'smtp_password="{0}"'),
    (_plain_password, "smtps://u%40x.com:{0}@smtp.x.com"),
    (_key, "sentry_auth_token={0}"),
    (_key, "NPM_TOKEN: {0}"),
    (_key, 'variable "token" {{\n  default = "{0}"\n}}'),
    (_key, '"Authorization": "Token {0}"'),
    (_key, "authorization: ApiKey {0}"),
    (_key, "Proxy-Authorization: Bearer {0}"),
    (_of((ALNUM, 24)), "session_token={0}"),
    (_key, 'id_token="{0}"'),
    (_key, '"sessionToken":"{0}"'),
    (_key, '"SessionToken": "{0}"'),
    (_plain_password, "sudo -S <<< {0}"),
    (_plain_password, "echo '{0}' | docker login --password-stdin"),
    (_plain_password, "PASS={0}"),
    (_plain_password, "pass: {0}"),
    (_plain_password, "pwd: {0}"),
    (_plain_password, '"pass": "{0}"'),
    (_plain_password, "DB_PWD={0}"),
    (_plain_password, "<Password>{0}</Password>"),
    (_plain_password, '<property name="password" value="{0}"/>'),
    (_key, "<apiKey>{0}</apiKey>"),
    (_plain_password, "login: bob password: {0}"),
    (_plain_password, "user=bob,password={0},db=x"),
    (_plain_password, "Enter password: {0}"),
    (_plain_password, "password='{0}'"),
    (_plain_password, "passwd {0}"),
    (_key, "api_key: {0}"),
    (_key, "secrets:\n  stripe: {0}"),
    (_plain_password, "auth:\n  username: u\n  password: >-\n    {0}"),
    (_key, "access_key_secret={0}"),
    (_key, "consumer_secret = {0}"),
    (_key, "SECRET={0}"),
    (_key, 'CLIENT_SECRET: "{0}"'),
    (_key, 'oauth_token_secret="{0}"'),
    (_plain_password, 'ssh_passphrase="{0}"'),
    (_plain_password, "keystore_password={0}"),
    (_plain_password, "storePassword={0}"),
    (_plain_password, "-Djavax.net.ssl.keyStorePassword={0}"),
    (_key, "?token={0}"),
    (_key, "#access_token={0}&type=x"),
    (_key, "wss://x/y?auth={0}"),
    (_plain_password, "ftp://u:{0}@h/"),
    (_basic, "_auth={0}"),
    (_basic, '_auth = "{0}"'),
    (_of((LOWER_HEX, 32)), "Dropbox secret: {0}"),
    (_key, "secretAccessKey: {0}"),
    (_key, 'AZURE_STORAGE_KEY="{0}"'),
    (_key, "credentials: {0}"),
    (_plain_password, "PGPASSWORD={0} psql"),
    (_plain_password, "MYSQL_PWD={0} mysql"),
    (_plain_password, "RESTIC_PASSWORD={0}"),
    (_plain_password, "密码是{0}，别忘了"),
    (_plain_password, "口令={0}"),
    (_plain_password, "a senha: {0}"),
    (_plain_password, "Passwort: {0}"),
    (_plain_password, "mot de passe : {0}"),
)
"""More places, taken from manuals, which the rules were not written against at first; a few are known to be missed."""

PEM_KINDS = ("RSA PRIVATE KEY", "PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY", "ENCRYPTED PRIVATE KEY")


def make_secrets(seed: int = 1, *, rounds: int = 3) -> Iterator[Sample]:
    """Every token in every setting once, every named setting `rounds` times, and private keys."""
    rng = random.Random(seed)
    for kind, make in TOKENS.items():
        for setting in TOKEN_SETTINGS:
            token = make(rng)
            yield Sample(kind=kind, text=setting.format(token), secrets=(token,))
    for _ in range(rounds):
        for kind, make, setting in NAMED_SETTINGS:
            secret = make(rng)
            yield Sample(kind=kind, text=setting.format(secret), secrets=(secret,))
        yield from _private_keys(rng)


def make_held_out(seed: int = 77, *, rounds: int = 5) -> Iterator[Sample]:
    """Every held-out setting `rounds` times."""
    rng = random.Random(seed)
    for make, setting in HELD_OUT_SETTINGS * rounds:
        secret = make(rng)
        yield Sample(kind="held out", text=setting.format(secret), secrets=(secret,))


def _private_keys(rng: random.Random) -> Iterator[Sample]:
    for kind in PEM_KINDS:
        lines = ["MIIE" + _of((BASE64, 60))(rng), *(_of((BASE64, 64))(rng) for _ in range(10))]
        begin, end = f"-----BEGIN {kind}-----", f"-----END {kind}-----"
        whole = "\n".join([begin, *lines, end])
        cut = "\n".join([begin, *lines[:6]])[:-10]
        yield Sample(kind="private-key", text=f"$ cat key.pem\n{whole}\n$ ls", secrets=tuple(lines))
        yield Sample(kind="private-key", text=json.dumps({"output": whole}), secrets=tuple(lines))
        yield Sample(kind="private-key", text=f"密钥：{whole}。", secrets=tuple(lines))
        yield Sample(kind="private-key-cut", text=f"$ cat key.pem\n{cut}", secrets=(*lines[:5], lines[5][:50]))
        numbered = "\n".join(f"{n:6}\t{line}" for n, line in enumerate(whole.split("\n"), 1))
        yield Sample(kind="private-key", text=numbered, secrets=tuple(lines))
        quoted = " +\n".join(f'    "{line}\\n"' for line in whole.split("\n"))
        yield Sample(kind="private-key", text=f"String key =\n{quoted};", secrets=tuple(lines))
        tail = "\n".join([lines[3][20:], *lines[4:], end])
        yield Sample(kind="private-key-tail", text=f"{tail}\ndone", secrets=tuple(lines[4:]))


def make_ordinary(seed: int = 1, *, chars: int = 1_000_000) -> Iterator[str]:
    """About so many characters of what coding agents read and write every day, with no secret in it."""
    rng = random.Random(seed)
    made = 0
    while made < chars:
        text = rng.choice(_ORDINARY)(rng)
        made += len(text)
        yield text


def _git_log(rng: random.Random) -> str:
    entry = (
        "commit {0}\nAuthor: Ada <ada@example.com>\nDate:   Fri May 1 10:00:0{1} 2026 +0200\n\n"
        "    Fix token refresh and key lookup (#{1})\n\n"
    )
    return "".join(entry.format(_of((LOWER_HEX, 40))(rng), rng.randrange(10)) for _ in range(30))


def _lock_file(rng: random.Random) -> str:
    entry = (
        '"node_modules/oauth-sign-{0}": {{\n  "version": "{0}.9.0",\n  "resolved": "https://registry.npmjs.org/key-{0}/-/'
        'key-{0}.tgz",\n  "integrity": "sha512-{1}==",\n  "dev": true\n}},\n'
    )
    return "".join(entry.format(n, _of((BASE64, 86))(rng)) for n in range(40))


def _python_lock(rng: random.Random) -> str:
    return "".join(f"keyring=={n}.1 \\\n    --hash=sha256:{_of((LOWER_HEX, 64))(rng)}\n" for n in range(60))


def _poetry_lock(rng: random.Random) -> str:
    line = '    {{file = "tokenize_rt-{0}-py3-none-any.whl", hash = "sha256:{1}"}},\n'
    return "".join(line.format(n, _of((LOWER_HEX, 64))(rng)) for n in range(60))


def _image(rng: random.Random) -> str:
    return f'<img src="data:image/png;base64,iVBORw0KGgo{_of((BASE64, 4000))(rng)}" alt="key">\n'


def _uuids(rng: random.Random) -> str:
    line = '{{"id": "{0}", "sessionId": "{1}", "parentUuid": "{2}", "key": "{3}", "input_tokens": {4}}}\n'
    return "".join(line.format(*(_uuid(rng) for _ in range(4)), rng.randrange(10**6)) for _ in range(30))


def _minified(rng: random.Random) -> str:
    names = [_of((string.ascii_lowercase, 2))(rng) for _ in range(6)]
    body = (
        'function {0}({1},{2}){{var key={1}.key,token={2}.token||null;return"password"===key?{3}(token):'
        '{{key:"k"+{4},secret:void 0,auth:{5}.auth,apiKey:{5}.apiKey}}}}'
    )
    return "".join(body.format(*names) for _ in range(30)) + "\n"


def _code(rng: random.Random) -> str:
    return (
        "def login(user: str, password: str, token: str | None = None) -> Session:\n"
        '    """Exchange the password for a token. Raises KeyError if the key is unknown."""\n'
        '    api_key = os.environ["API_KEY"]\n'
        "    password = getpass.getpass('Password: ')\n"
        "    secret = settings.secret_key or config.get('SECRET_KEY', '')\n"
        "    if password == '' or token is None:\n"
        "        raise ValueError('password must not be empty')\n"
        "    headers = {'Authorization': f'Bearer {token}', 'X-Api-Key': api_key}\n"
        "    return Session(user=user, token=response.json()['access_token'], key=lambda item: item.key)\n"
        "type Props = { apiKey: string; password?: string; onTokenChange: (token: string) => void };\n"
        "const token = await getToken({ secret: process.env.NEXTAUTH_SECRET, req });\n"
        '<input type="password" name="password" placeholder="Password" autoComplete="current-password" />\n'
        "password: z.string().min(8), token: z.string().uuid(), apiKey: z.string().optional(),\n"
        f"MAX_TOKENS = {rng.randrange(10**5)}\nTOKEN_LIMIT={rng.randrange(10**5)}\nKEY_LENGTH = 256\n"
        "export API_KEY=$(op read op://vault/item/key)\nexport DB_PASSWORD=${DB_PASSWORD:?unset}\n"
        "OPENAI_API_KEY=<your key>\nANTHROPIC_API_KEY=your-api-key-here\nGITHUB_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxx\n"
        "env:\n  GITHUB_TOKEN: ${{ secrets.GITHUB_TOKEN }}\n  password: {{ db_password }}\n  secretName: app-secret\n"
        "postgres://user:password@localhost/db, https://example.com:8080/a@b, ssh://git@github.com/team/app.git\n"
        "primary_key=True, foreign_key='users.id', sort_key = 'created_at_1', cache-key: linux-node-20-abcdef012345\n"
        "if (pem.startsWith('-----BEGIN PRIVATE KEY-----')) { return parseKey(pem); }\n"
        "root:x:0:0:root:/root:/bin/bash\n/etc/passwd:12:daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
        "PWD=/home/ada/src\nOLDPWD=/tmp\nSSH_AUTH_SOCK=/run/user/1000/keyring/ssh\n"
        "risk-based-authentication-flow, task-1234567890-abcdefghij, disk-usage-2026-05-01-report\n"
    )


def _prose(rng: random.Random) -> str:
    return (
        "The token bucket holds 100 tokens; each request takes one. Rotate the secret every 90 days, and keep the key "
        "in the vault. Bearer authentication is described in RFC 6750; basic authentication in RFC 7617.\n"
        "令牌的有效期是一小时，密码错误时返回401。パスワードを忘れた場合は、管理者に連絡してください。\n"
        "كلمة المرور مطلوبة قبل المتابعة. Пароль должен содержать не менее восьми символов.\n"
        'Password: (hidden)\nEnter password for ada: \nPassword authentication failed for user "app"\n'
        "fatal: could not read Username; token expired; key not found: 'user_settings_v2'\n"
    )


def _logs(rng: random.Random) -> str:
    line = "2026-05-01T10:{0:02}:00Z INFO worker[{1}]: job {2} done in {3} ms, key=jobs:{1}:state etag={4} trace={5}\n"
    return "".join(
        line.format(n % 60, rng.randrange(999), _uuid(rng), n, _of((LOWER_HEX, 32))(rng), _of((LOWER_HEX, 16))(rng))
        for n in range(40)
    )


_ORDINARY: tuple[Make, ...] = (
    _git_log,
    _lock_file,
    _python_lock,
    _poetry_lock,
    _image,
    _uuids,
    _minified,
    _code,
    _prose,
    _logs,
)
