"""Renders the chart with the cluster's helm; each set of values once."""
import functools
import json
import os
import subprocess
import tempfile
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "helm" / "headrace"
CACHE = Path(os.environ.get("HEADRACE_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headrace")
HELM = CACHE / "cluster" / "bin" / "helm"
NAMESPACE = "headrace-system"


def helm(*arguments, check=True):
    done = subprocess.run([str(HELM), *map(str, arguments)], capture_output=True, text=True)
    if check and done.returncode:
        raise AssertionError(f"helm {arguments}: {done.stderr}")
    return done


def template(values, chart=CHART, release="headrace", namespace=NAMESPACE, check=True):
    """`helm template` with these values beside the chart's own; the completed process."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        json.dump(values, file)
        file.flush()
        return helm("template", release, chart, "--namespace", namespace, "--values", file.name, check=check)


@functools.cache
def _attempted(values, chart, release, namespace):
    return template(json.loads(values), chart, release, namespace, check=False)


def attempt(values=None, chart=CHART, release="headrace", namespace=NAMESPACE):
    """`template` without a check, each set of values once."""
    return _attempted(json.dumps(values or {}), chart, release, namespace)


def render(*arguments, **options):
    """The objects that the chart makes of these values."""
    done = attempt(*arguments, **options)
    assert done.returncode == 0, done.stderr
    return [item for item in yaml.load_all(done.stdout, yaml.CSafeLoader) if item]


def find(objects, kind, name=None):
    found = [o for o in objects if o["kind"] == kind and name in (None, o["metadata"]["name"])]
    assert len(found) == 1, f"{len(found)} objects of kind {kind}, name {name}"
    return found[0]


def pod_specs(objects):
    """(kind and name, pod spec) of everything that makes pods."""
    for item in objects:
        if item["kind"] in ("Deployment", "Job", "StatefulSet", "DaemonSet"):
            yield f"{item['kind']} {item['metadata']['name']}", item["spec"]["template"]["spec"]
        elif item["kind"] == "Pod":
            yield f"Pod {item['metadata']['name']}", item["spec"]
