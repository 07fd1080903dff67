"""Measures operators on the API server that operator_cluster.sh started: one table, a line a figure, with its goal and what
the best known operators were measured at. It asserts nothing.
"""
import argparse
import http.client
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kube_api import ADDRESS, RUN, Api, metrics, quantile

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = ROOT / "tests" / "cluster"
BINARY = ROOT / "build" / "release" / "bin" / "headrace-operator"
SYSTEM, NAMESPACE = "headrace-system", "bench"
INPUTS = f"/apis/headrace.dev/v1alpha1/namespaces/{NAMESPACE}/distributedinputs"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
REVIEW = "controller_runtime_webhook_latency_seconds"
RECONCILE = "controller_runtime_reconcile_time_seconds"


def control_plane_seconds():
    """Processor time that etcd and the API server have used."""
    total = 0
    for part in ("etcd", "apiserver"):
        stat = Path(f"/proc/{(RUN / f'{part}.pid').read_text().strip()}/stat").read_text()
        total += sum(map(int, stat.rpartition(")")[2].split()[11:13]))
    return total / os.sysconf("SC_CLK_TCK")


def wait_for(what, probe, timeout, progress=None):
    """Polls until probe() is true; returns the seconds that it took. Says every ten seconds what progress() is: what takes so
    long is asked seldom."""
    began = told = time.monotonic()
    while not probe():
        now = time.monotonic()
        if now - began > timeout:
            sys.exit(f"waited {timeout} s in vain for {what}")
        if progress and now - told > 10:
            told = now
            print(f"  {now - began:.0f} s: {progress()}", flush=True)
        time.sleep(0.5 if progress else 0.02)
    return time.monotonic() - began


class Operator:
    count = 0

    def __init__(self):
        """Starts one; `started` is when."""
        Operator.count += 1
        self.name, self.port, self._webhook = f"operator-{Operator.count}", 18080 + Operator.count, 19443 + Operator.count
        self.started = time.monotonic()
        command = [CLUSTER / "operator.sh", self.name, BINARY, str(self._webhook), str(self.port)]
        self.pid = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    def ready(self):
        connection = http.client.HTTPConnection(ADDRESS, self.port, timeout=10)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def samples(self):
        return metrics(ADDRESS, self.port)

    def leads(self):
        return any(v == 1 for k, v in self.samples().items() if k.startswith("leader_election_master_status"))

    def total(self, name, *labels):
        return sum(v for k, v in self.samples().items() if k.split("{")[0] == name and all(label in k for label in labels))

    def memory(self, field="VmRSS"):
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) / 1024
        return float("nan")

    def publish(self, api):
        """The API server finds the webhook here; there is no controller that would say so."""
        body = {
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": self.name, "namespace": SYSTEM, "labels": {"kubernetes.io/service-name": "headrace-webhook"}},
            "endpoints": [{"addresses": [ADDRESS], "conditions": {"ready": True}}],
            "ports": [{"name": "webhook", "port": self._webhook, "protocol": "TCP"}],
        }  # fmt: skip
        api.must("POST", f"/apis/discovery.k8s.io/v1/namespaces/{SYSTEM}/endpointslices", body)

    def end(self, api, number):
        api.call("DELETE", f"/apis/discovery.k8s.io/v1/namespaces/{SYSTEM}/endpointslices/{self.name}")
        os.kill(self.pid, number)


def install(api):
    """What the chart installs, but for what needs nodes."""
    render = [ROOT / "scripts" / "bundle.sh", "--set", "monitoring.dashboards.enabled=false"]
    subprocess.run(render, check=True, stderr=subprocess.DEVNULL)
    subprocess.run(["kubectl", "apply", "--server-side", "-f", ROOT / "dist" / "headrace.yaml"], check=True, stdout=subprocess.DEVNULL)
    api.must("DELETE", f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/headrace-operator")
    api.must("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    # The controller that makes it does not run.
    api.must("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": {"name": "default"}})


def an_input(i):
    return {
        "apiVersion": "headrace.dev/v1alpha1", "kind": "DistributedInput", "metadata": {"name": f"input-{i}"},
        "spec": {
            "source": {"files": {"paths": ["train-*.tfrecord"], "volume": {"configMap": {"name": "data"}}}},
            "features": [{"name": "x", "dtype": "float32", "shape": [8]}, {"name": "label", "dtype": "int64"}],
            "pipeline": [{"shuffle": {"bufferSize": 10000, "seed": 7}}, {"batch": {"size": 1024}}],
            "distribution": {"replicasPerWorker": 8},
        },
    }  # fmt: skip


def a_pod(name, labels=None, job=None):
    container = {"name": "trainer", "image": "registry.example/trainer:1", "command": ["python", "/app/train.py"]}
    metadata = {"name": name, "labels": labels or {"app": "other"}}
    if job is not None:
        metadata["ownerReferences"] = [{"apiVersion": "batch/v1", "kind": "Job", "name": "gang", "uid": job, "controller": True}]
    return {"metadata": metadata, "spec": {"containers": [container], "automountServiceAccountToken": False}}


class Table:
    def __init__(self):
        self._rows = []

    def add(self, what, value, unit="", most=None, least=None, anchors="", digits=0):
        """A figure, and the bound that is its goal."""
        goal = f"<= {most:,} {unit}" if most is not None else f">= {least:,} {unit}" if least is not None else ""
        missed = (most is not None and not value <= most) or (least is not None and not value >= least)
        text = f"{value:,.{digits}f} {unit}".strip()
        self._rows.append((what, text, goal.strip(), "missed" if missed else "", anchors))
        print(f"{what}: {text} {'(goal: ' + goal + ')' if goal else ''} {'MISSED' if missed else ''}", flush=True)

    def print(self):
        print(f"\n{'':58} {'measured':>12}  {'goal':<12} {'':6}  the best known")
        for what, value, goal, missed, anchors in self._rows:
            print(f"{what:58} {value:>12}  {goal:<12} {missed:6}  {anchors}")


def measure_inputs(api, table, options):
    api.create_all("inputs", INPUTS, (an_input(i) for i in range(options.inputs)), options.inputs)
    control_plane = control_plane_seconds()
    first = Operator()
    wait_for("the first operator", first.ready, 60)
    first.publish(api)
    accepted = lambda: int(first.total("headrace_operator_inputs", 'condition="Accepted"', 'status="True"'))
    wait_for("all inputs to be Accepted", lambda: accepted() >= options.inputs, 600, lambda: f"{accepted()} Accepted")
    took, count = time.monotonic() - first.started, first.total("controller_runtime_reconcile_total")
    table.add(f"{options.inputs:,} inputs to Accepted, from the operator's start", took, "s", most=60, digits=1, anchors="KubeRay 1,515 s (with pods)")
    table.add("... reconciles a second until then", count / took, least=500, anchors="Kueue 43, NVSentinel 230")
    cached = lambda resource: int(first.total("headrace_operator_cached_objects", f'resource="{resource}"'))
    rest = lambda: min(cached("configmaps"), cached("services"))
    done = lambda: rest() >= options.inputs and first.total("workqueue_depth") == 0
    wait_for("what no pod uses yet to be made", done, 600, lambda: f"{rest()} have their plan and Service")
    table.add("... and each with its plan, Service and keys", time.monotonic() - first.started, "s", digits=1)
    control_plane, samples = control_plane_seconds() - control_plane, first.samples()
    table.add("... P99 of one, not above *", 1e3 * quantile({}, samples, RECONCILE, 0.99), "ms", anchors="NVSentinel 9 to 10 ms")
    table.add("... processor time of the operator for an input", 1e3 * first.total("process_cpu_seconds_total") / options.inputs, "ms", digits=2)
    table.add("... processor time of API server and etcd for an input", 1e3 * control_plane / options.inputs, "ms", digits=2)
    table.add("... requests to the API server for an input", first.total("rest_client_requests_total") / options.inputs, digits=1)
    return first


def measure_pods(api, table, options, operators):
    others = options.pods - options.opted
    api.create_all("pods of others", PODS, (a_pod(f"other-{i}") for i in range(others)), others)
    before = sum(o.total("headrace_webhook_injections_total", 'result="injected"') for o in operators)
    labels = lambda i: {"headrace.dev/input": f"input-{i % options.inputs}"}
    began = time.monotonic()
    api.create_all("pods that use an input", PODS, (a_pod(f"mine-{i}", labels(i)) for i in range(options.opted)), options.opted)
    took = time.monotonic() - began
    injected = sum(o.total("headrace_webhook_injections_total", 'result="injected"') for o in operators) - before
    table.add(f"{options.opted:,} pods through the API server: a second", options.opted / took, anchors="NVSentinel 165")
    table.add("... without a loader", options.opted - int(injected), most=0)
    depth = lambda: operators[0].total("workqueue_depth")
    wait_for("the leader's queue to be empty", lambda: depth() == 0, 600, lambda: f"{depth():.0f} in the leader's queue")


def measure_gang(api, table, options, operators):
    job = {
        "metadata": {"name": "gang"},
        "spec": {
            "completions": options.gang, "parallelism": options.gang, "completionMode": "Indexed",
            "template": {"metadata": {"labels": {"headrace.dev/input": "input-0"}},
                         "spec": {"restartPolicy": "Never", "containers": [{"name": "trainer", "image": "x"}]}},
        },
    }  # fmt: skip
    uid = api.must("POST", f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs", job)["metadata"]["uid"]
    pod = lambda i: a_pod(f"gang-{i}", {"headrace.dev/input": "input-0", "batch.kubernetes.io/job-completion-index": str(i)}, uid)
    before = [o.samples() for o in operators]
    began = time.monotonic()
    with ThreadPoolExecutor(16) as pool:
        made = list(pool.map(lambda i: api.must("POST", PODS, pod(i)), range(options.gang)))
    took = time.monotonic() - began
    bare = sum(not any(c["name"] == "headrace-loader" for c in p["spec"].get("initContainers", [])) for p in made)
    p99 = max(quantile(b, o.samples(), REVIEW, 0.99) for b, o in zip(before, operators))
    table.add(f"a gang of {options.gang:,} pods admitted", took, "s", digits=1, anchors="NVSentinel 8.4 s")
    table.add("... without a loader", bare, most=0, anchors="NVSentinel 0, once 1,006")
    table.add("... P99 of the webhook's answer, not above *", 1e3 * p99, "ms", most=5, anchors="NVSentinel 25 ms")


def measure_failover(api, table, options, leader, standby):
    leader.end(api, signal.SIGKILL)
    table.add("leader killed: the standby leads after", wait_for("a leader", standby.leads, 60), "s", most=17, digits=1, anchors="lease of 15 s")
    # It looks at every input anew, which is as it should be.
    began, samples = time.monotonic(), standby.samples()
    reconciled = lambda: standby.total("controller_runtime_reconcile_total")
    before, cpu = reconciled(), standby.total("process_cpu_seconds_total")
    done = lambda: reconciled() >= options.inputs and standby.total("workqueue_depth") == 0
    wait_for("the new leader to have seen all", done, 600, lambda: f"{reconciled():.0f} reconciled")
    count, took = reconciled() - before, time.monotonic() - began
    table.add("reconciles a second, nothing to write", count / took, least=500, anchors="Kueue 43, NVSentinel 230")
    p99 = quantile(samples, standby.samples(), RECONCILE, 0.99)
    table.add("... P99 of one, not above *", 1e3 * p99, "ms", anchors="NVSentinel 9 to 10 ms")
    table.add("... processor time of the operator for one", 1e3 * (standby.total("process_cpu_seconds_total") - cpu) / count, "ms", digits=2)
    third = Operator()
    wait_for("the third operator", third.ready, 120)
    took = time.monotonic() - third.started
    table.add("start to ready, with all that in the API server", took, "s", most=5, digits=1, anchors="NVSentinel 3.7 to 10.5 s")
    table.add("... its memory then, at most", third.memory("VmHWM"), "MB", most=100, anchors="NVSentinel 5,256 MB at 99k nodes")
    third.publish(api)
    standby.end(api, signal.SIGTERM)
    table.add("leader told to end: the standby leads after", wait_for("a leader", third.leads, 60), "s", most=1, digits=2)
    return third


def churn(api, table, options, operator):
    """Pods that use inputs come and go; what the operator's memory does meanwhile."""
    # It has just begun to lead.
    wait_for("the last leader's queue to be empty", lambda: operator.total("workqueue_depth") == 0, 600)
    began, i, series = time.monotonic(), 0, []
    while time.monotonic() < began + options.churn:
        time.sleep(max(0, i / options.churn_rate - (time.monotonic() - began)))  # a load, not a wait for something
        for _ in range(50):
            name = f"churn-{i}"
            api.must("POST", PODS, a_pod(name, {"headrace.dev/input": f"input-{i % options.inputs}"}))
            api.must("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
            i += 1
        series.append(operator.memory())
    quarter = max(1, len(series) // 4)
    first, last = sum(series[:quarter]) / quarter, sum(series[-quarter:]) / quarter
    table.add(f"{options.churn} s of churn, {i:,} pods: memory in the first quarter", first, "MB", most=100)
    table.add("... and how much it grew by the last", last - first, "MB", most=2, digits=1)


def measure(api, table, options):
    install(api)
    first = measure_inputs(api, table, options)
    second = Operator()
    wait_for("the second operator", second.ready, 120)
    second.publish(api)
    measure_pods(api, table, options, [first, second])
    measure_gang(api, table, options, [first, second])
    sizes = f"{options.inputs:,} inputs, {options.pods:,} pods"
    table.add(f"leader's memory, {sizes}", first.memory(), "MB", most=100, anchors="cert-manager 528 MB at 10k certificates")
    table.add(f"standby's memory, {sizes}", second.memory(), "MB", most=100, anchors="OpenKruise agents 1,118 MiB at 200k objects")
    third = measure_failover(api, table, options, first, second)
    if options.churn:
        churn(api, table, options, third)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--inputs", type=int, default=10000)
    parser.add_argument("--pods", type=int, default=100000)
    parser.add_argument("--opted", type=int, default=10000, help="of the pods, so many use an input")
    parser.add_argument("--gang", type=int, default=1028)
    parser.add_argument("--churn", type=int, default=120, help="seconds; 3600 for what the goal says")
    parser.add_argument("--churn-rate", type=float, default=1000, help="pods a second that come and go, if they can")
    options = parser.parse_args()
    api, table = Api(), Table()
    busy = lambda: f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, which the API server and this script share"
    print(busy(), flush=True)
    try:
        measure(api, table, options)
    finally:  # what there is, if something came in between
        table.print()
        print("* The upper bound of a histogram's bucket. Reconciles in process, where no API server shares the cores: operator_bench.")
        print(busy())


if __name__ == "__main__":
    main()
