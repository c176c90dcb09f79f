"""Secrets are masked before they are stored: by the name before them, and by their own shape."""

from __future__ import annotations

import time

import pytest

from zombiescope.audit.finding import EvidenceLine
from zombiescope.base.secrets import MASK, is_secret_name, mask_text, mask_words
from zombiescope.kernel.process import parse_cmdline
from zombiescope.node.containers import bundle
from zombiescope.store.event import Event

SECRET = "hunter2"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.c2lnbmF0dXJl"
AWS = "AKIAIOSFODNN7EXAMPLE"
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n-----END OPENSSH PRIVATE KEY-----"

COMMANDS = [
    ["train.py", "--password", SECRET],
    ["train.py", "--password=" + SECRET],
    ["train.py", "-password", SECRET],
    ["train.py", "--db-password", SECRET],
    ["train.py", "--wandb_api_key=" + SECRET],
    ["train.py", "--hfToken", SECRET],
    ["java", "-Dspring.datasource.password=" + SECRET, "-jar", "x.jar"],
    ["env", f"PGPASSWORD={SECRET}", f"AWS_SECRET_ACCESS_KEY={SECRET}", "psql"],
    ["env", f"DB_PASSWORD=with {SECRET} in it", "x"],
    ["docker", "run", "-e", f"TOKEN={SECRET}", "image"],
    ["docker", "run", f"--env=TOKEN={SECRET}", "image"],
    ["docker", "login", "-u", "me", "-p", SECRET],
    ["mysql", "-uroot", f"-p{SECRET}", "db"],
    ["/usr/bin/mysqldump", f"-p{SECRET}"],
    ["sshpass", "-p", SECRET, "ssh", "host"],
    ["redis-cli", "-a", SECRET, "ping"],
    ["curl", "-u", f"me:{SECRET}", "https://example.org"],
    ["curl", f"--user=me:{SECRET}", "https://example.org"],
    ["curl", "-H", f"Authorization: Basic {SECRET}", "https://example.org"],
    ["curl", "-H", f"X-Api-Key: {SECRET}", "https://example.org"],
    ["curl", f"https://example.org/?user=me&token={SECRET}"],
    ["psql", f"postgres://me:{SECRET}@db/x"],
    ["git", "clone", f"https://me:p@{SECRET}@example.org/x"],
    ["sh", "-c", f"mysql -u root -p{SECRET} -e 'select 1'"],
    ["sh", "-c", f"run --token {SECRET} && next"],
    ["sh", "-c", f'run --password "{SECRET} with a space"'],
    [f"worker: run --api-key {SECRET}"],
]
SHAPES = [
    JWT, AWS, "ghp_0123456789abcdefABCDEF", "github_pat_0123456789abcdefABCDEF", "glpat-0123456789abcdefABCD",
    "sk-proj-0123456789abcdefABCDEF", "sk_live_0123456789abcdef", "hf_0123456789abcdefABCDEF", "xoxb-0123456789-abcdef",
    "AIzaSyA0123456789abcdefghijklmnopqrstuv", "npm_0123456789abcdefABCDEF", KEY,
]  # fmt: skip
PLAIN = [
    ["train.py", "--max-tokens", "512", "--tokenizer", "llama", "--bos_token_id", "1"],
    ["x", "--token-file", "key", "--password-file=/run/secrets/db", "--secret-name", "db"],
    ["ssh", "-p", "22", "host"],
    ["docker", "run", "-p", "8080:80", "image"],
    ["ssh-add", "--key", "server.key"],
    ["python", "-m", "passlib.hash", "loop.py"],
    ["curl", "https://example.org:8080/token/list?page=2"],
    ["kubelet", "--config=/var/lib/kubelet/config.yaml", "--node-ip=10.0.0.1"],
    ["x", "--password="],
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_secret_on_a_command_line_is_masked_and_the_rest_stays(words: list[str]) -> None:
    masked = mask_words(words)
    assert SECRET not in " ".join(masked)
    assert MASK in " ".join(masked)
    assert len(masked) == len(words)
    assert masked[0].split()[0] == words[0].split()[0]
    # AND so it is when nobody knows where a word ends, as in a log, but for programs known by their options
    if words[0].rpartition("/")[2] not in ("curl", "docker", "sshpass", "redis-cli") and " in it" not in str(words):
        assert SECRET not in mask_text(" ".join(words))


@pytest.mark.parametrize("secret", SHAPES)
def test_a_secret_is_known_by_its_shape_wherever_it_stands(secret: str) -> None:
    for words in (["x", secret], ["x", f"--anything={secret}"], ["x", f"say '{secret}' now"]):
        assert secret not in " ".join(mask_words(words))
    assert mask_text(f"started with {secret} by me").endswith(" by me")
    assert secret not in mask_text(f"started with {secret} by me")


@pytest.mark.parametrize("words", PLAIN, ids=" ".join)
def test_what_is_no_secret_stays(words: list[str]) -> None:
    assert mask_words(words) == words


@pytest.mark.parametrize(
    "line",
    [
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,task=python3,pid=4711,uid=0",
        "ena 0000:00:05.0 eth0: Transmit timeout, key 0x12",
        "token-refresher.service: Failed with result 'exit-code'.",
        'audit: type=1400 audit(1.2:3): apparmor="DENIED"',
    ],
)
def test_lines_of_the_kernel_stay(line: str) -> None:
    assert mask_text(line) == line


@pytest.mark.parametrize(
    "line",
    [
        f"app: connecting with password={SECRET} to db",
        f'app: {{"api_key": "{SECRET}", "user": "me"}}',
        f"GET /x HTTP/1.1 Authorization: Bearer {SECRET}{SECRET}",
        f"proxy http://me:{SECRET}@10.0.0.1:3128 failed",
    ],
)
def test_secrets_in_lines_of_a_log_are_masked(line: str) -> None:
    assert SECRET not in mask_text(line)
    event = Event(0, "kernel_log", "kmsg-user", "info", line, {"line": line, "pid": 4711}).masked()
    assert SECRET not in "".join(map(str, event.row()))
    assert event.fields["pid"] == 4711


def test_wherever_command_lines_come_in_they_come_in_masked() -> None:
    assert parse_cmdline(f"mysql\0-p{SECRET}\0db\0".encode()) == f"mysql -p{MASK} db"
    assert parse_cmdline(b"x\0--password\0\xff\xfe\0") == f"x --password {MASK}"
    spec = b'{"process": {"args": ["x", "--token", "hunter2"]}}'
    described = bundle.parse(spec)
    assert described is not None
    assert described.description.arguments == ("x", "--token", MASK)
    line = EvidenceLine("/etc/systemd/system/x.service", 3, f"ExecStart=/usr/bin/x --password {SECRET}")
    assert SECRET not in line.text


def test_names_that_only_speak_of_a_secret() -> None:
    for name in ("--password", "HF_TOKEN", "apiKey", "clientSecret", "AWS_SECRET_ACCESS_KEY", "X-Api-Key", "db.pwd"):
        assert is_secret_name(name), name
    for name in ("--tokenizer", "max_tokens", "token-file", "KEYBOARD", "passenger", "author", "monkey", "token_id"):
        assert not is_secret_name(name), name


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "a-",
        "a=",
        "eyJ",
        "eyJ-",
        "://a:",
        "://",
        "-----BEGIN PRIVATE KEY",
        "mysql ",
        "token:",
        "bearer ",
        '"key": ',
    ],
)
def test_a_line_that_was_made_to_hurt_costs_no_more_than_its_length(piece: str) -> None:
    def cost(length: int) -> float:
        line = (piece * length)[:length]
        best = float("inf")
        for _ in range(3):
            start = time.thread_time()
            mask_text(line)
            mask_words(line.split(" "))
            best = min(best, time.thread_time() - start)
        return best

    assert cost(32_768) < 32 * cost(4_096) + 0.01


def test_a_word_may_have_as_many_names_as_it_likes() -> None:
    """Any user of the node can start a program like this. It had no name, and the recording said that it was blind."""
    many = "a=" * 2000
    assert parse_cmdline(f"sh\0password=x\0{many}x".encode()) == f"sh password={MASK} {many}x"
    assert mask_words([f"{many}TOKEN=hunter2", "x"]) == [f"{many}TOKEN={MASK}", "x"]
    assert mask_words(["--header=Authorization: Basic hunter2"]) == [f"--header=Authorization: {MASK}"]
