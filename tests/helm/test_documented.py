"""What docs/operator.md shows of installing: values that the chart takes, and commands as they are here."""
import re
import shlex
import subprocess

import yaml

from chart import NAMESPACE, ROOT, find, helm, render

PAGE = (ROOT / "docs" / "operator.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.M | re.S)


def test_the_values_are_taken():
    shown = [yaml.safe_load(body) for language, body in BLOCKS if language == "yaml" and body.startswith("# values.yaml")]
    assert shown
    for values in shown:
        deployment = find(render(values), "Deployment")
        assert deployment["spec"]["replicas"] == values["replicas"]


def commands(program):
    lines = [line for language, body in BLOCKS if language == "console" for line in body.splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith(program + " ")]


def test_helm_installs_as_shown():
    """The end-to-end tests run these commands; here they are those."""
    install, test = commands("helm")
    assert install[:4] == ["upgrade", "--install", "headrace", "helm/headrace"]
    helm("template", "headrace", ROOT / install[3], *install[4:6])
    assert install[6:] == ["--create-namespace"]
    assert test == ["test", "headrace", "--namespace", NAMESPACE]


def test_the_bundle_is_made_as_shown():
    push, (target, arguments) = commands("make")
    assert (push[0], target) == ("push", "bundle")  # tests/e2e/test_push.py has what the first does
    subprocess.run([ROOT / "scripts" / "bundle.sh", *shlex.split(arguments.removeprefix("ARGS="))], check=True, capture_output=True)
    applied = [command[-1] for command in commands("kubectl") if command[:3] == ["apply", "--server-side", "-f"]]
    assert applied == ["dist/headrace.yaml", "crds/"]
    operator = find(list(yaml.load_all((ROOT / applied[0]).read_text(), yaml.CSafeLoader)), "Deployment")
    container = operator["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == "registry.example.com/operator:0.1.0"
    assert "--loader-image=registry.example.com/loader:0.1.0" in container["args"]


def test_the_loaders_ports_are_those_of_the_code():
    (policy,) = [yaml.safe_load(body) for language, body in BLOCKS if language == "yaml" and body.startswith("# NetworkPolicy")]
    ports = {p["port"] for rule in policy["spec"]["ingress"] for p in rule["ports"]}
    names = (ROOT / "common" / "spec" / "names.h").read_text()
    assert {str(port) for port in ports} == set(re.findall(r"constexpr \w+ k\w*Port = (\d+);", names))
