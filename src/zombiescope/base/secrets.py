"""Secrets in command lines and log lines, masked before they are stored: whoever reads a recording never sees them.

By name: `--password X`, `--token=X`, `HF_TOKEN=X`, `"api_key": "X"`, `Authorization: X`, and the options with which
some programs take a password (`mysql -pX`, `curl -u me:X`).
By shape: keys and tokens that are known by how they begin (AKIA..., ghp_..., sk-..., hf_...), JSON web tokens, private
keys, and `user:X@` in a URL.

What is masked becomes `***`; names of files and settings about secrets (`--token-file key`) stay. A secret that has
neither a name nor a shape is not found: this is a net, not a proof (docs/security.md).

Cost: 2 us for a line without anything suspicious, some 100 us for a long one; linear in its length.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

MASK = "***"

_SUSPICIOUS = re.compile(
    r"(?i:pass|pw|psk|token|secret|key|auth|cred|cookie|bearer|://|signature|sig=|login)|eyJ|A[KSBC]IA|ACCA|AIza|ya29|xox"
    r"|gh[pousr]_|_pat_|glpat-|[sr]k[-_]|hf_|npm_|pypi-|dop_|nvapi-|mysql|mariadb|mongo|redis|ldap|curl|wget|smbclient|zip"
    r"|7z|ipmitool|docker|podman|nerdctl|openssl|snmp|useradd|usermod|mc |rclone|s3cmd|kinit|helm"
)
_SHAPES = re.compile(
    r"(?<![\w-])eyJ[\w-]{8,}+\.[\w-]{4,}+(?:\.[\w-]*+)?"
    r"|(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}"
    r"|(?<![A-Za-z0-9])(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|xox[a-z]-[\w-]{10,}"
    r"|sk-[\w-]{16,}|[sr]k_(?:live|test)_\w{10,}|hf_[A-Za-z0-9]{16,}|npm_[A-Za-z0-9]{16,}|pypi-[\w-]{16,}"
    r"|dckr_pat_[\w-]{16,}|dop_v1_[a-f0-9]{16,}|nvapi-[\w-]{16,}|AIza[\w-]{30,}|ya29\.[\w.-]{16,})"
)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY.*?(?:-----END [A-Z0-9 ]{0,40}-----|\Z)", re.DOTALL)
_IN_URL = re.compile(r"(?<=://)([^\s/?#:@]{0,256}):[^\s/?#]{1,1024}@")
_TOKEN_IN_URL = re.compile(r"(?<=://)[A-Za-z0-9_.~%+-]{20,512}@")
"""Before the host and without a user: a Sentry DSN, `git clone https://TOKEN@host`. Names of users are shorter."""
_QUERY = re.compile(
    r"(?i)([?&;](?:sig|sign|signature|x-amz-signature|x-goog-signature|key|code|auth|access_key|apikey|pass|pw)=)"
    r"[^&;#\s\"'<>]{1,4096}"
)
"""Signed addresses (S3, GCS, Azure's `sig`) and keys of services. These words are harmless outside of a query."""
_HEADER = re.compile(
    r"(?i)(?<![\w-])((?:proxy-)?authorization|x-api-key|x-[a-z-]{0,32}token|(?:set-)?cookie)(\s{0,4}[:=]\s{0,4})"
    r"(?:(?:bearer|basic|token|digest|negotiate)\s{1,4})?[^\s\"',;]{1,4096}"
)
_BEARER = re.compile(r"(?i)(?<![\w-])(bearer\s{1,4})[\w.~+/=-]{8,}")
_NAMED = re.compile(r"(?<![\w.-])(-{0,2}[A-Za-z_][\w.-]{0,95})([\"']?\s{0,4}[=:]\s{0,4}|\s{1,4}(?=[^\s-]))")
_VALUE = re.compile(r"\"[^\"]{1,4096}\"?|'[^']{1,4096}'?|[^\s,;&\"'|]{1,4096}")
_SCRIPT = re.compile(
    r"((?:^|[\s/;&|])(?:mysql|mariadb)[\w-]{0,16}\s(?:[^\s|;&]{1,256}\s{1,4}){0,16}?-p)([^\s|;&]{1,256})"
)

_WORDS = frozenset(
    {
        "pass", "pwd", "pw", "passwd", "authorization", "bearer", "cookie", "apikey", "accesskey", "secretkey", "psk",
        "authkey", "requirepass", "masterauth", "storepass", "keypass", "dbpass", "userpass", "passin", "passout",
        "signature", "authtoken",
    }
)  # fmt: skip
_ENDINGS = ("password", "passwd", "passphrase", "passcode", "secret", "token", "credential", "credentials", "apikey")
_KINDS_OF_KEYS = frozenset(
    {
        "api", "access", "secret", "private", "account", "shared", "signing", "encryption", "encrypt", "license",
        "master", "auth", "wandb", "hf", "huggingface", "openai", "anthropic", "azure", "storage", "comet", "neptune",
        "ngc", "nvidia", "datadog", "dd", "sentry", "session", "tunnel", "preshared", "webhook", "app", "admin", "hmac",
    }
)  # fmt: skip
_NOT_THE_SECRET = frozenset(
    {
        "file", "files", "path", "dir", "directory", "name", "type", "mode", "ttl", "timeout", "length", "count", "id",
        "uri", "url", "endpoint", "policy", "provider", "expiry", "expires", "size", "limit", "env", "fd", "format",
        "service", "scope", "slice", "socket", "timer", "target", "mount", "version", "algorithm", "method", "prompt",
        "stdin", "required", "enabled", "disabled", "store", "helper", "manager", "class", "only", "rotation",
    }
)  # fmt: skip
_NAME = re.compile(r"-{0,2}\w[\w.-]{0,127}")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

# Options with which a program takes a secret: as the next word, or attached to the letter.
_OPTIONS: dict[str, tuple[tuple[str, ...], bool]] = {
    "mysql": (("-p",), False), "mariadb": (("-p",), False), "sshpass": (("-p",), True), "mongo": (("-p",), True),
    "redis-cli": (("-a",), True), "ldap": (("-w",), True), "ipmitool": (("-P",), True), "zip": (("-P",), True),
    "unzip": (("-P",), True), "7z": (("-p",), False), "docker": (("-p",), True), "podman": (("-p",), True),
    "nerdctl": (("-p",), True), "openssl": (("-k", "-K"), True), "curl": (("-u", "-b", "-U"), True),
    "wget": (("-u",), True), "smbclient": (("-U",), True), "az": (("-p",), True), "snmp": (("-A", "-X", "-c"), True),
    "useradd": (("-p",), True), "usermod": (("-p",), True), "clickhouse": (("-p",), True), "oc": (("-p",), True),
    "helm": (("-p",), True), "skopeo": (("-p",), True), "crane": (("-p",), True),
}  # fmt: skip
"""Program, by how its name begins -> (options, whether the next word may be their value)."""
_USER_AND_SECRET = {"curl": ":", "wget": ":", "smbclient": "%"}
_LOGIN = frozenset({"docker", "podman", "nerdctl", "az", "oc", "helm", "skopeo", "crane"})
"""Their -p is a password only for `login`."""
_POSITIONAL = {
    "wandb": (("login",), 1), "vault": (("login",), 1), "mc": (("alias", "set"), 2), "aws": (("configure", "set"), 1),
    "htpasswd": ((), 1), "gh": (("secret", "set"), 1), "huggingface-cli": (("login",), 1), "hf": (("auth", "login"), 1),
}  # fmt: skip
"""Program -> (words that have to be there, how many words at the end are secret)."""


def mask_words(words: Sequence[str]) -> list[str]:
    """The words of a command line. Values that have a name before them are masked whole."""
    if not any(map(_SUSPICIOUS.search, words)):
        return list(words)
    masked = list(_by_place(list(_by_option(words))))
    for at, word in enumerate(masked):
        is_option = word.startswith("-") and "=" not in word and at + 1 < len(masked)
        if is_option and not masked[at + 1].startswith("-") and is_secret_name(word):
            masked[at + 1] = MASK
        masked[at] = _masked_word(masked[at])
    return masked


def mask_text(text: str) -> str:
    """A line of a log, a script, or a command line of which the words are not known."""
    if not _SUSPICIOUS.search(text):
        return text
    text = _PRIVATE_KEY.sub(MASK, text)
    text = _IN_URL.sub(rf"\1:{MASK}@", text)
    text = _TOKEN_IN_URL.sub(f"{MASK}@", text)
    text = _QUERY.sub(rf"\1{MASK}", text)
    text = _HEADER.sub(rf"\1\2{MASK}", text)
    text = _BEARER.sub(rf"\1{MASK}", text)
    text = _SHAPES.sub(MASK, text)
    text = _SCRIPT.sub(rf"\1{MASK}", text)
    return _named(text)


def mask_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What an event says beside its text."""
    return {name: mask_text(value) if isinstance(value, str) else value for name, value in fields.items()}


def mask_document(value: Any) -> Any:
    """Every text in a JSON document."""
    if isinstance(value, str):
        return mask_text(value)
    if isinstance(value, dict):
        return {name: mask_document(one) for name, one in value.items()}
    return [mask_document(one) for one in value] if isinstance(value, (list, tuple)) else value


def _masked_word(word: str) -> str:
    """A word: of `--header=Authorization: Basic xyz` and of `PASSWORD=with spaces` everything belongs to the value."""
    before: list[str] = []
    name, _, value = word.partition("=")
    while value and _NAME.fullmatch(name):
        before.append(f"{name}=")
        if is_secret_name(name):
            return "".join([*before, MASK])
        word = value
        name, _, value = word.partition("=")
    name, _, value = word.partition(":")
    is_header = value.startswith(" ") and is_secret_name(name)
    return "".join([*before, f"{name}: {MASK}" if is_header else mask_text(word)])


def _named(text: str) -> str:
    """`name=value`, `name: value`, `--name value`; without a sign between them only where the name is an option."""
    pieces, end = [], 0
    for found in _NAMED.finditer(text):
        name, between = found.groups()
        if found.start() < end or (between.isspace() and not name.startswith("-")) or not is_secret_name(name):
            continue
        value = _VALUE.match(text, found.end())
        if value is not None and MASK not in value[0]:
            quote = value[0][0] if value[0][0] in "\"'" else ""
            pieces += [text[end : value.start()], quote, MASK, quote]
            end = value.end()
    return "".join([*pieces, text[end:]]) if pieces else text


@lru_cache(maxsize=1024)
def is_secret_name(name: str) -> bool:
    """Whether what follows this option, variable or key is a secret."""
    parts = [part.lower() for part in _PARTS.findall(name)]
    if not parts or parts[-1] in _NOT_THE_SECRET:
        return False
    if any(part in _WORDS or part.endswith(_ENDINGS) for part in parts):
        return True
    return any(kind in _KINDS_OF_KEYS and key == "key" for kind, key in pairwise(parts))


def _by_option(words: Sequence[str]) -> Iterable[str]:
    """With the values of options that a program is known for masked."""
    program = next((word.rpartition("/")[2] for word in words if word), "")
    prefix = next((each for each in _OPTIONS if program.startswith(each)), None)
    if prefix is None or (prefix in _LOGIN and "login" not in words):
        yield from words
        return
    options, takes_next = _OPTIONS[prefix]
    is_value = False
    for word in words:
        if is_value:
            word = _value(word, prefix)
        elif word.startswith(options) and len(word) > 2 and not word.startswith("--"):
            word = word[:2] + _value(word[2:], prefix)
        elif word.startswith("--user=") and prefix in _USER_AND_SECRET:
            word = f"--user={_value(word.removeprefix('--user='), prefix)}"
        is_value = takes_next and (word in options or (word == "--user" and prefix in _USER_AND_SECRET))
        yield word


def _by_place(words: list[str]) -> list[str]:
    """With the values masked that a program takes by their place: `wandb login KEY`, `aws configure set NAME VALUE`."""
    program = next((word.rpartition("/")[2] for word in words if word), "")
    if "--from-literal" in " ".join(words) and "secret" in words:
        words = [_literal(word) for word in words]
    needed, count = _POSITIONAL.get(program, ((), 0))
    plain = [at for at, word in enumerate(words) if at and not word.startswith("-") and word not in needed]
    if not count or len(plain) < count or not all(word in words for word in needed):
        return words
    if program == "aws":
        return [MASK if at and is_secret_name(words[at - 1]) and at in plain else word for at, word in enumerate(words)]
    if program == "htpasswd" and len(plain) <= 2:
        return words
    return [MASK if at in plain[-count:] else word for at, word in enumerate(words)]


def _literal(word: str) -> str:
    """Of `kubectl create secret generic x --from-literal=name=value`."""
    option, equals, rest = word.partition("=")
    name, found, _ = rest.partition("=")
    return f"{option}={name}={MASK}" if equals and found and option == "--from-literal" else word


def _value(word: str, program: str) -> str:
    sign = _USER_AND_SECRET.get(program)
    if sign is None:
        return MASK
    user, found, _ = word.partition(sign)
    if not found and program == "curl" and "=" in word:  # -b name=value, a cookie
        return f"{word.partition('=')[0]}={MASK}"
    return f"{user}{sign}{MASK}" if found else word
