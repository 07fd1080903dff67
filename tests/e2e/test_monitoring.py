"""What dashboards and alerts ask, asked of a real Prometheus that scrapes the operator and the pods of a running Job."""
import base64
import json
import re
import subprocess
from urllib.parse import urlencode

import pytest

import expressions
import workload
from cluster import ROOT, SCRIPTS, SYSTEM_NAMESPACE, ApiError, unpacked

PORT = 9090
# Debian's Prometheus comes without service discovery by Kubernetes: `discover` below writes what that would find.
CONFIG = """
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [%s]
scrape_configs:
- job_name: headrace-loaders
  file_sd_configs: [{files: [headrace.json], refresh_interval: 1s}]
- job_name: headrace-operator
  scheme: https
  authorization: {credentials_file: token}
  tls_config: {ca_file: ca.crt, server_name: headrace-webhook.headrace-system.svc}
  file_sd_configs: [{files: [metrics.json], refresh_interval: 1s}]
"""
PORT_NAMES = ("headrace", "metrics")
# Prints the body of each address on a line; nothing where there is no connection.
FETCH = """
import sys, urllib.error, urllib.request
for address in sys.argv[1:]:
    try: body = urllib.request.urlopen(address).read()
    except urllib.error.HTTPError as error: body = error.read()
    except urllib.error.URLError: sys.exit()
    print(body.decode().strip())
"""


# Asks an operator for its metrics as Prometheus would; prints the status and the body.
FETCH_METRICS = """
import http.client, socket, ssl, sys
address, authority, token = sys.argv[1:]
connection = http.client.HTTPConnection(address)
connection.sock = ssl.create_default_context(cadata=authority).wrap_socket(
    socket.create_connection((address, 8443), 10), server_hostname="headrace-webhook.headrace-system.svc")
connection.request("GET", "/metrics", headers={"Authorization": "Bearer " + token} if token else {})
answer = connection.getresponse()
print(answer.status, answer.read().decode(), sep="\\n")
"""


def targets_of(pod, port_name):
    """A running pod's ports of that name, its init containers' among them, with the usual labels."""
    address = pod["status"].get("podIP")
    if not address or pod["status"]["phase"] != "Running":
        return []
    containers = pod["spec"].get("initContainers", []) + pod["spec"]["containers"]
    ports = [p["containerPort"] for c in containers for p in c.get("ports", []) if p.get("name") == port_name]
    labels = {"namespace": pod["metadata"]["namespace"], "pod": pod["metadata"]["name"]}
    return [{"targets": [f"{address}:{port}"], "labels": labels} for port in ports]


def operator_pods(cluster):
    return cluster.list("Pod", SYSTEM_NAMESPACE, "app.kubernetes.io/name=headrace-operator")


def operator_authority(cluster):
    """What vouches for the operator's certificate, as the ServiceMonitor finds it."""
    data = cluster.request("GET", f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/secrets/headrace-webhook-certificate")["data"]
    return base64.b64decode(data["ca.crt"]).decode()


def token_of(cluster, namespace, account):
    return cluster.kubectl("create", "token", account, "-n", namespace).strip()


def operator_metrics(cluster, pod, token=""):
    """HTTP status and body of an operator pod's /metrics."""
    command = ["python3", "-c", FETCH_METRICS, pod["status"]["podIP"], operator_authority(cluster), token]
    status, body = cluster.run(*command).stdout.split("\n", 1)
    return int(status), body


class Prometheus:
    def __init__(self, cluster, folder, token):
        self._cluster = cluster
        (folder / "token").write_text(token)
        (folder / "ca.crt").write_text(operator_authority(cluster))
        config = folder / "prometheus.yml"
        config.write_text(CONFIG % (ROOT / "alerts" / "headrace.yaml"))
        self._folder = folder
        command = [unpacked("prometheus"), f"--config.file={config}", f"--storage.tsdb.path={folder}/data"]
        command.append(f"--web.listen-address=127.0.0.1:{PORT}")
        self._log = (folder / "prometheus.log").open("w")
        self._process = subprocess.Popen([SCRIPTS / "run.sh", *command], stdout=self._log, stderr=self._log)

    def close(self):
        self._process.terminate()
        self._process.wait()
        self._log.close()

    def discover(self, *namespaces):
        pods = [pod for name in namespaces for pod in self._cluster.list("Pod", name)]
        for port_name in PORT_NAMES:
            partial = self._folder / f"{port_name}.partial"
            partial.write_text(json.dumps([target for pod in pods for target in targets_of(pod, port_name)]))
            partial.rename(self._folder / f"{port_name}.json")

    def get(self, *paths):
        """What the HTTP API answers to each of the paths; None while Prometheus does not answer."""
        done = self._cluster.run("python3", "-c", FETCH, *(f"http://127.0.0.1:{PORT}/api/v1/{path}" for path in paths))
        return [json.loads(line) for line in done.stdout.splitlines()] or None

    def query(self, expressions):
        """The result of an instant query of each; None while Prometheus does not answer."""
        answers = self.get(*("query?" + urlencode({"query": expression}) for expression in expressions))
        for expression, answer in zip(expressions, answers or []):
            assert answer["status"] == "success", f"{expression}: {answer}"
        return answers and [answer["data"]["result"] for answer in answers]


@pytest.fixture
def reader(cluster, namespace):
    """The token of a service account that may read metrics, as the chart lets a Prometheus."""
    cluster.kubectl("create", "serviceaccount", "prometheus", "-n", namespace)
    cluster.kubectl(
        "create", "clusterrolebinding", namespace, "--clusterrole=headrace-metrics-reader",
        f"--serviceaccount={namespace}:prometheus",
    )  # fmt: skip
    yield token_of(cluster, namespace, "prometheus")
    cluster.kubectl("delete", "clusterrolebinding", namespace)


@pytest.fixture
def prometheus(cluster, reader, tmp_path):
    server = Prometheus(cluster, tmp_path, reader)
    yield server
    server.close()


def test_only_who_may_get_metrics_does(cluster, namespace, reader):
    """Of each replica, the standby too; and the port of the probes has none."""
    for pod in operator_pods(cluster):
        status, body = operator_metrics(cluster, pod, reader)
        assert status == 200 and "leader_election_master_status" in body
        assert operator_metrics(cluster, pod)[0] == 401
        assert operator_metrics(cluster, pod, "made-up")[0] == 401
        status, body = operator_metrics(cluster, pod, token_of(cluster, namespace, "default"))
        assert status == 403 and f"system:serviceaccount:{namespace}:default may not get /metrics" in body
        with pytest.raises(ApiError, match="not found"):
            cluster.metrics(SYSTEM_NAMESPACE, pod["metadata"]["name"], 8080)


def test_every_panel_and_every_alert_has_data(cluster, namespace, reader, prometheus):
    """And every metric that is exported has a panel."""
    spec = workload.range_spec(100000, 8, replicasPerWorker=2)
    cluster.create(workload.trainer_config_map(namespace), workload.distributed_input(namespace, "watched", spec))
    cluster.wait_condition(namespace, "watched", "Accepted", "True")
    cluster.create(workload.job(namespace, "trainer", "watched", 2, environment={"STEP_SECONDS": "0.05"}))
    refused = workload.job(namespace, "refused", "missing", 1)["spec"]["template"]
    refused["metadata"] |= {"name": "refused", "namespace": namespace}
    with pytest.raises(ApiError, match="missing"):
        cluster.create({"apiVersion": "v1", "kind": "Pod", **refused})

    wanted = {**expressions.dashboards(), **expressions.alerts()}
    empty = list(wanted)

    def all_return_data():
        nonlocal empty
        prometheus.discover(namespace, SYSTEM_NAMESPACE)
        results = prometheus.query(empty)
        empty = [expression for expression, result in zip(empty, results or empty) if not (results and result)]
        return not empty

    try:
        cluster.wait_for("data for every expression", all_return_data, timeout=90)
    except TimeoutError:
        pytest.fail("no data for:\n" + "\n".join(f"{wanted[expression]}: {expression}" for expression in empty))

    (rules,) = prometheus.get("rules?type=alert")
    rules = [rule for group in rules["data"]["groups"] for rule in group["rules"]]
    assert [rule["name"] for rule in rules] == [rule["alert"] for rule in expressions.rules()]
    assert not [rule for rule in rules if rule["health"] != "ok"]
    assert "HeadraceOperatorDown" not in {rule["name"] for rule in rules if rule["state"] != "inactive"}

    trainer = cluster.pods_of_job(namespace, "trainer")[0]["metadata"]["name"]
    exported = re.findall(r"^# TYPE (\w+)", cluster.metrics(namespace, trainer), re.M)
    for pod in operator_pods(cluster):
        exported += re.findall(r"^# TYPE (\w+)", operator_metrics(cluster, pod, reader)[1], re.M)
    shown = set().union(*map(expressions.metrics, expressions.dashboards()))
    assert set(exported) <= shown, "exported, and in no panel"
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
