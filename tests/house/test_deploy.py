"""The files of `deploy` name what the program has and let it drain; every alert has a section of the runbook."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]  # it comes with schemathesis; its types are a package of their own
from scripts import generate_docs

from everkept import config
from everkept.doors.cli.commands import build_app
from everkept.doors.http.callers import OPEN_PATHS
from everkept.doors.http.server import ANSWER_S
from everkept.errors import ConfigInvalid
from everkept.store.store import READERS

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
PAGE = (ROOT / "docs" / "self-hosting.md").read_text("utf-8")
RUNBOOK = (ROOT / "docs" / "runbook.md").read_text("utf-8")
CONTAINERFILE = (DEPLOY / "Containerfile").read_text("utf-8")
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
OURS = [service for service in COMPOSE["services"].values() if service["image"] == "everkept"]
KUSTOMIZATION = yaml.safe_load((DEPLOY / "kubernetes" / "kustomization.yaml").read_text("utf-8"))
OBJECTS = [
    found
    for name in KUSTOMIZATION["resources"]
    for found in yaml.safe_load_all((DEPLOY / "kubernetes" / name).read_text("utf-8"))
]
PODS = [found["spec"]["template"]["spec"] for found in OBJECTS if found["kind"] == "Deployment"]
CONTAINERS = [container for pod in PODS for container in pod["containers"]]
SECTIONS = ("Means", "Lost", "Look", "Do", "Over when")
DRAIN_S = ANSWER_S + config.Work().drain_s


def unit() -> configparser.ConfigParser:
    read = configparser.ConfigParser(interpolation=None, comment_prefixes=("#",), delimiters=("=",), strict=True)
    read.optionxform = str  # type: ignore[assignment, method-assign]  # systemd's names have capitals
    read.read_string((DEPLOY / "everkept.service").read_text("utf-8"))
    return read


def instruction(name: str) -> list[str]:
    """What stands after each `NAME` of the Containerfile, continued lines joined."""
    return re.findall(rf"^{name} (.+)$", CONTAINERFILE.replace("\\\n", " "), re.MULTILINE)


def image_environment() -> dict[str, str]:
    return dict(pair.split("=", 1) for line in instruction("ENV") for pair in shlex.split(line))


def environment() -> Iterator[tuple[str, str]]:
    yield from image_environment().items()
    yield tuple(unit()["Service"]["Environment"].split("=", 1))  # type: ignore[misc]
    for service in OURS:
        yield from service["environment"].items()
    for generator in KUSTOMIZATION["configMapGenerator"]:
        yield from (literal.split("=", 1) for literal in generator["literals"])


def commands() -> Iterator[list[str]]:
    """Every command line of ours, without the program's name."""
    program, *words = unit()["Service"]["ExecStart"].split()
    assert Path(program).name == "everkept"
    yield words
    assert json.loads(instruction("ENTRYPOINT")[0]) == ["everkept"]
    yield json.loads(instruction("CMD")[0])
    yield from (service["command"] for service in OURS)
    yield from (container["args"] for container in CONTAINERS)


def seconds(text: str) -> int:
    return int(text.removesuffix("s"))


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_every_command_is_one_of_the_program(words: list[str]) -> None:
    build_app().parse_args(words, exit_on_error=False, print_error=False)


def test_every_variable_is_a_setting_and_every_value_one_that_it_takes(tmp_path: Path) -> None:
    ours = {(name, value) for name, value in environment() if name.startswith("EVERKEPT_")}
    assert len(ours) > 5
    for name, value in ours:
        given = value
        if name.endswith("_FILE"):
            (tmp_path / "secret").write_text("postgresql://everkept@database/everkept", "utf-8")
            (tmp_path / "secret").chmod(0o600)
            given = str(tmp_path / "secret")
        config.load({name: re.sub(r"\$\{\w+:\?\}", "0123456789abcdef", given)})


def test_kubernetes_adds_no_variables_that_the_program_would_take_for_mistakes() -> None:
    services = [found["metadata"]["name"] for found in OBJECTS if found["kind"] == "Service"]
    assert services == ["everkept"]
    with pytest.raises(ConfigInvalid):
        config.load({"EVERKEPT_SERVICE_HOST": "10.0.0.1"})
    assert [pod["enableServiceLinks"] for pod in PODS] == [False] * len(PODS)


def test_all_speak_of_the_port_that_the_program_listens_on() -> None:
    port = str(config.Server().address[1])
    assert image_environment()["EVERKEPT_BIND"] == f"0.0.0.0:{port}"
    assert instruction("EXPOSE") == [port]
    published = [each.rsplit(":", 1)[-1] for service in OURS for each in service.get("ports", [])]
    assert published == [port]
    ports = [each for container in CONTAINERS for each in container.get("ports", [])]
    assert {each["name"]: str(each["containerPort"]) for each in ports} == {"http": port}
    services = [found for found in OBJECTS if found["kind"] == "Service"]
    assert [each["targetPort"] for found in services for each in found["spec"]["ports"]] == ["http"]


def test_probes_ask_what_the_program_answers_without_a_key() -> None:
    by_name = [(name, probe) for container in CONTAINERS for name, probe in container.items()]
    probes = [probe["httpGet"] for name, probe in by_name if name.endswith("Probe")]
    asked = {(probe["path"], probe["port"]) for probe in probes}
    assert asked == {("/healthz", "http"), ("/readyz", "http")}
    in_compose = re.findall(r"http://127\.0\.0\.1:7411(/\w+)", json.dumps(COMPOSE["services"]["app"]["healthcheck"]))
    paths = {path for path, _ in asked} | set(in_compose)
    assert in_compose == ["/readyz"]
    assert paths <= OPEN_PATHS
    assert paths <= set(generate_docs.openapi()["paths"])


def test_nothing_stops_the_program_before_it_has_drained() -> None:
    grace = [seconds(unit()["Service"]["TimeoutStopSec"]), *(seconds(service["stop_grace_period"]) for service in OURS)]
    for pod in PODS:
        waits = [
            int(container["lifecycle"]["preStop"]["exec"]["command"][1])
            for container in pod["containers"]
            if "lifecycle" in container
        ]
        grace.append(pod["terminationGracePeriodSeconds"] - sum(waits))
    stop_of_the_page = re.search(r"--stop-timeout (\d+)", PAGE)
    assert stop_of_the_page
    grace.append(int(stop_of_the_page[1]))
    assert min(grace) >= DRAIN_S + 10, "and something to close the store in"


def test_no_container_is_root_or_writes_elsewhere_than_its_home() -> None:
    user = instruction("USER")[-1]
    assert user.split(":")[0] != "0"
    home = image_environment()["EVERKEPT_HOME"]
    for pod, container in zip(PODS, CONTAINERS, strict=True):
        security = pod["securityContext"]
        assert security["runAsNonRoot"]
        assert f"{security['runAsUser']}:{security['runAsGroup']}" == user
        assert container["securityContext"]["readOnlyRootFilesystem"]
        writable = {mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
        assert writable == {home, "/tmp"}
    for service in OURS:
        assert service["read_only"]
        assert {mount.split(":")[0] for mount in service["tmpfs"]} == {home, "/tmp"}
    assert unit()["Service"]["User"] not in ("", "root")


def test_files_of_secrets_lie_where_they_are_mounted_and_the_page_makes_each() -> None:
    files = [Path(value) for name, value in environment() if name.endswith("_FILE")]
    assert files
    for container in CONTAINERS:
        mounted = {mount["mountPath"] for mount in container["volumeMounts"] if mount.get("readOnly")}
        assert {str(file.parent) for file in files} == mounted
    made = re.search(r"^kubectl create secret generic (\w+)(.*)$", PAGE, re.MULTILINE)
    assert made
    assert {made[1]} == {v["secret"]["secretName"] for pod in PODS for v in pod["volumes"] if "secret" in v}
    assert set(re.findall(r"--from-file=(\w+)", made[2])) == {file.name for file in files}


def test_compose_asks_for_the_secrets_that_the_page_makes() -> None:
    asked = set(re.findall(r"\$\{(\w+):\?\}", (DEPLOY / "compose.yaml").read_text("utf-8")))
    made = re.search(r"^for name in ([A-Z_ ]+);", PAGE, re.MULTILINE)
    assert made
    assert asked == set(made[1].split())


def test_the_image_is_built_of_what_there_is() -> None:
    let_in = set((DEPLOY / "Containerfile.dockerignore").read_text("utf-8").replace("!", "").split())
    copied = {word for line in instruction("COPY") if "--from" not in line for word in line.split()[:-1]}
    assert copied == {"pyproject.toml", "requirements.lock", "README.md", "LICENSE", "NOTICE", "src"}
    assert copied <= let_in
    assert all((ROOT / name).exists() for name in copied)
    extras = re.search(r"'\.\[([\w,]+)\]'", CONTAINERFILE)
    assert extras
    known = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert set(extras[1].split(",")) <= set(known)


def test_every_file_of_deploy_is_named_by_the_page() -> None:
    names = {path.name for path in DEPLOY.iterdir()}
    files = {name for name in names if not name.startswith(".") and name != "Containerfile.dockerignore"}
    assert files == {"Containerfile", "compose.yaml", "everkept.service", "kubernetes"}
    assert [name for name in files if f"](../deploy/{name})" not in PAGE] == []
    resources = {path.name for path in (DEPLOY / "kubernetes").iterdir()} - {"kustomization.yaml"}
    assert resources == set(KUSTOMIZATION["resources"])


def test_the_page_counts_the_connections_that_a_process_opens() -> None:
    writer, listener = 1, 1
    each = writer + READERS + listener
    assert f"**{each} connections a process**" in PAGE
    rows = re.findall(r"^\| (\d+) \| (\d+) \| ", PAGE, re.MULTILINE)
    assert rows
    assert all(int(connections) == each * int(processes) for processes, connections in rows)


def test_every_alert_has_a_section_of_the_runbook_and_no_section_is_of_none() -> None:
    rules = yaml.safe_load((ROOT / "monitoring" / "alerts.yml").read_text("utf-8"))
    alerts = [rule["alert"] for group in rules["groups"] for rule in group["rules"]]
    assert alerts
    assert re.findall(r"^## (\w+)$", RUNBOOK, re.MULTILINE) == alerts


def test_every_section_of_the_runbook_says_what_is_lost_and_when_it_is_over() -> None:
    for section in re.split(r"^## ", RUNBOOK, flags=re.MULTILINE)[1:]:
        assert re.findall(r"^\*\*([\w ]+)[.*]", section, re.MULTILINE) == list(SECTIONS), section.splitlines()[0]
