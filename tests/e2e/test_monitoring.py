"""The dashboard's expressions, run by a real Prometheus against the pods of a running Job."""
import json
import os
import re
import shutil
import subprocess
from urllib.parse import urlencode

import pytest

import workload
from cluster import ROOT, SCRIPTS, SYSTEM_NAMESPACE

PORT = 9090
# Debian's Prometheus comes without service discovery by Kubernetes: `discover` below writes what that would find.
CONFIG = """
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
- job_name: headrace
  file_sd_configs: [{files: [targets.json], refresh_interval: 1s}]
"""
PORT_NAMES = ("headrace", "http")


def targets_of(pod):
    """A running pod's ports of the known names, its init containers' among them, with the usual labels."""
    address = pod["status"].get("podIP")
    if not address or pod["status"]["phase"] != "Running":
        return []
    containers = pod["spec"].get("initContainers", []) + pod["spec"]["containers"]
    ports = [p["containerPort"] for c in containers for p in c.get("ports", []) if p.get("name") in PORT_NAMES]
    labels = {"namespace": pod["metadata"]["namespace"], "pod": pod["metadata"]["name"]}
    return [{"targets": [f"{address}:{port}"], "labels": labels} for port in ports]


def prometheus_binary():
    cache = os.environ.get("HEADRACE_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "headrace"
    )
    return shutil.which("prometheus") or os.path.join(cache, "prometheus", "usr", "bin", "prometheus")


class Prometheus:
    def __init__(self, cluster, folder):
        self._cluster = cluster
        config = folder / "prometheus.yml"
        config.write_text(CONFIG)
        self._targets = folder / "targets.json"
        self._targets.write_text("[]")
        command = [prometheus_binary(), f"--config.file={config}", f"--storage.tsdb.path={folder}/data"]
        command.append(f"--web.listen-address=127.0.0.1:{PORT}")
        self._log = (folder / "prometheus.log").open("w")
        self._process = subprocess.Popen([SCRIPTS / "run.sh", *command], stdout=self._log, stderr=self._log)

    def close(self):
        self._process.terminate()
        self._process.wait()
        self._log.close()

    def discover(self, *namespaces):
        found = [target for name in namespaces for pod in self._cluster.list("Pod", name) for target in targets_of(pod)]
        partial = self._targets.with_suffix(".partial")
        partial.write_text(json.dumps(found))
        partial.rename(self._targets)

    def query(self, expression):
        """The result of an instant query, through the HTTP API; None while Prometheus does not answer."""
        url = f"http://127.0.0.1:{PORT}/api/v1/query?" + urlencode({"query": expression})
        fetch = "import sys, urllib.request as u, urllib.error as e\ntry: print(u.urlopen(sys.argv[1]).read().decode())\nexcept e.HTTPError as x: print(x.read().decode())\nexcept e.URLError: pass"
        text = self._cluster.run("python3", "-c", fetch, url).stdout
        if not text.strip():
            return None
        answer = json.loads(text)
        assert answer["status"] == "success", f"{expression}: {answer}"
        return answer["data"]["result"]


@pytest.fixture
def prometheus(cluster, tmp_path):
    server = Prometheus(cluster, tmp_path)
    yield server
    server.close()


def expressions():
    """Every expression of the dashboard, its variables replaced as Grafana would for "all"."""
    dashboard = json.loads((ROOT / "dashboards" / "loaders.json").read_text())
    panels = list(dashboard["panels"])
    for panel in panels:
        panels.extend(panel.get("panels", []))
    found = [target["expr"] for panel in panels for target in panel.get("targets", [])]
    assert found, "the dashboard has no expressions"
    plain = []
    for expression in found:
        expression = re.sub(r"\$\{?__(rate_)?interval\}?|\$\{?__range\}?", "15s", expression)
        plain.append(re.sub(r"\$\{\w+(:\w+)?\}|\$\w+", ".*", expression))
    return plain


def test_every_expression_of_the_dashboard_returns_data(cluster, namespace, prometheus):
    spec = workload.range_spec(100000, 8, replicasPerWorker=2)
    cluster.create(workload.trainer_config_map(namespace), workload.distributed_input(namespace, "watched", spec))
    cluster.wait_condition(namespace, "watched", "Accepted", "True")
    cluster.create(workload.job(namespace, "trainer", "watched", 2, environment={"STEP_SECONDS": "0.05"}))

    empty = expressions()

    def all_return_data():
        nonlocal empty
        prometheus.discover(namespace, SYSTEM_NAMESPACE)
        empty = [expression for expression in empty if not prometheus.query(expression)]
        return not empty

    try:
        cluster.wait_for("data for every expression", all_return_data, timeout=90)
    except TimeoutError:
        pytest.fail("no data for: " + "\n".join(empty))
    finally:
        cluster.delete("Job", namespace, "trainer")


def test_a_loader_counts_what_it_handed_over(cluster, namespace):
    spec = workload.range_spec(64, 8, replicasPerWorker=2)
    spec["pipeline"].append({"repeat": {"count": -1}})
    cluster.create(workload.trainer_config_map(namespace), workload.distributed_input(namespace, "counted", spec))
    cluster.wait_condition(namespace, "counted", "Accepted", "True")
    cluster.create(workload.job(namespace, "trainer", "counted", 1, environment={"STEP_SECONDS": "0.1"}))

    def counts():
        pods = cluster.pods_of_job(namespace, "trainer")
        if not pods or cluster.logs(namespace, pods[0]["metadata"]["name"], "trainer", check=False).count("\n") < 5:
            return None
        text = cluster.metrics(namespace, pods[0]["metadata"]["name"])
        value = lambda name, replica: float(re.search(rf'^headrace_loader_{name}{{replica="{replica}"}} (\S+)', text, re.M)[1])
        return [(value("batches_total", r), value("records_total", r), value("bytes_total", r)) for r in (0, 1)]

    for batches, records, size in cluster.wait_for("counts of both replicas", counts):
        assert batches >= 5
        assert records == 4 * batches
        assert size == 8 * records
    cluster.delete("Job", namespace, "trainer")
