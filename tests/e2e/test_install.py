"""Ways to install: the CRDs alone, the bundle, the chart over its first version, `helm test`.

conftest.py has these run first and in this order: they begin without Headrace, and leave the chart installed.
"""
import re
import subprocess

import pytest
import yaml

import workload
from cluster import ROOT, SYSTEM_NAMESPACE, ApiError

CHART = ROOT / "helm" / "headrace"
FIRST_CHART = ROOT / "tests" / "helm" / "first-chart.tgz"  # as it was at commit b91dae5, packaged
CRDS = ROOT / "crds"
INPUT = workload.range_spec(8, 4)
STEPS, BATCH, REPLICAS = 80, 8, 2


@pytest.fixture(scope="module")
def without_headrace(bare_cluster):
    """The cluster with nothing of an earlier session that was kept."""
    bare_cluster.run("helm", "uninstall", "headrace", "-n", SYSTEM_NAMESPACE, "--ignore-not-found", "--wait")
    bare_cluster.kubectl("delete", "crd", "distributedinputs.headrace.dev", "--ignore-not-found")
    return bare_cluster


def test_the_crds_can_be_applied_alone(without_headrace, namespace):
    cluster = without_headrace
    cluster.kubectl("apply", "--server-side", "-f", str(CRDS))
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=20s", "-f", str(CRDS))
    cluster.create(workload.distributed_input(namespace, "alone", INPUT))
    with pytest.raises(ApiError, match="spec.source"):
        cluster.create(workload.distributed_input(namespace, "wrong", {"source": {}}))
    cluster.kubectl("delete", "-f", str(CRDS))


def second_release(cluster):
    """What Helm says to another release beside what is there; nothing is installed."""
    return cluster.run("helm", "install", "second", str(CHART), "-n", "default", "--dry-run=server", check=False)


def test_the_bundle_works_without_helm(without_headrace, namespace):
    cluster, bundle = without_headrace, str(ROOT / "dist" / "headrace.yaml")
    smaller = ["--set", "replicas=1", "--set", "operator.drainSeconds=0", "--set", "resources.requests.cpu=10m"]
    subprocess.run([ROOT / "scripts" / "bundle.sh", *smaller], check=True, capture_output=True)
    cluster.kubectl("apply", "--server-side", "-f", bundle)
    cluster.kubectl("-n", SYSTEM_NAMESPACE, "rollout", "status", "deployment/headrace-operator", "--timeout=60s")
    cluster.create(workload.distributed_input(namespace, "bundled", INPUT))
    cluster.wait_condition(namespace, "bundled", "Accepted", "True")
    again = cluster.kubectl("apply", "--server-side", "-f", bundle)
    assert "serverside-applied" in again
    refused = second_release(cluster)
    assert refused.returncode and "is in this cluster already (applied with kubectl" in refused.stderr
    cluster.kubectl("delete", "-f", bundle, "--wait=true")


def test_uninstalling_leaves_the_inputs(without_headrace, namespace):
    """And a release of the same name takes over what was left: the next test's."""
    cluster = without_headrace
    cluster.run("helm", "install", "headrace", str(CHART), "-n", SYSTEM_NAMESPACE, "--create-namespace", "--set", "replicas=0")
    cluster.create(workload.distributed_input(namespace, "left", INPUT))
    cluster.run("helm", "uninstall", "headrace", "-n", SYSTEM_NAMESPACE)
    assert cluster.get("DistributedInput", namespace, "left")


@pytest.fixture
def first_release(without_headrace):
    """The release as the chart's first version makes it.

    Its image is today's, which may want more rights than the chart then gave: those are lent until the upgrade.
    """
    cluster = without_headrace
    cluster.run("helm", "install", "headrace", str(FIRST_CHART), "-n", SYSTEM_NAMESPACE, "--create-namespace",
                "--set", "replicas=1", "--set", "operator.drainSeconds=0")  # fmt: skip
    account = f"--serviceaccount={SYSTEM_NAMESPACE}:headrace-operator"
    cluster.kubectl("create", "clusterrolebinding", "lent", "--clusterrole=cluster-admin", account)
    cluster.kubectl("-n", SYSTEM_NAMESPACE, "rollout", "status", "deployment/headrace-operator", "--timeout=90s")
    yield cluster
    cluster.kubectl("delete", "clusterrolebinding", "lent", "--ignore-not-found")


def schema_of_crd(crd):
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def test_an_upgrade_from_the_first_chart_disturbs_nobody(first_release, namespace):
    cluster = first_release
    spec = workload.range_spec(STEPS * BATCH, BATCH, replicasPerWorker=REPLICAS)
    cluster.create(workload.trainer_config_map(namespace), workload.distributed_input(namespace, "kept", spec))
    cluster.create(workload.job(namespace, "trainer", "kept", 1, environment={"STEP_SECONDS": "0.15"}))

    def pod():
        return cluster.pods_of_job(namespace, "trainer")[0]["metadata"]["name"]

    def printed_ten():
        pods = cluster.pods_of_job(namespace, "trainer")
        return pods and cluster.logs(namespace, pod(), "trainer", check=False).count('{"step"') >= 10

    cluster.wait_for("ten steps under the first chart", printed_ten, timeout=90)
    uid = cluster.get("DistributedInput", namespace, "kept")["metadata"]["uid"]
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/distributedinputs.headrace.dev"
    before = schema_of_crd(cluster.request("GET", path))

    cluster.kubectl("delete", "clusterrolebinding", "lent")
    cluster.run("helm", "upgrade", "headrace", str(CHART), "-n", SYSTEM_NAMESPACE, "--reset-values", "--wait", "--timeout", "90s")

    after = schema_of_crd(cluster.request("GET", path))
    now = schema_of_crd(yaml.safe_load((CRDS / "headrace.dev_distributedinputs.yaml").read_text()))
    wanted = set(now["properties"]["spec"]["properties"])
    assert set(after["properties"]["spec"]["properties"]) == wanted != set(before["properties"]["spec"]["properties"])
    deployment = cluster.get("Deployment", SYSTEM_NAMESPACE, "headrace-operator")
    assert deployment["status"]["availableReplicas"] == deployment["spec"]["replicas"] == 2
    assert cluster.get("DistributedInput", namespace, "kept")["metadata"]["uid"] == uid
    cluster.wait_condition(namespace, "kept", "Accepted", "True")
    cluster.wait_job(namespace, "trainer")
    got = workload.printed_steps(cluster.logs(namespace, pod(), "trainer"))
    piece = BATCH // REPLICAS
    begin = lambda step, replica: step * BATCH + replica * piece
    assert got == [[list(range(begin(s, r), begin(s, r) + piece)) for r in range(REPLICAS)] for s in range(STEPS)]
    status = cluster.get("Pod", namespace, pod())["status"]
    assert all(s["restartCount"] == 0 for s in status["initContainerStatuses"] + status["containerStatuses"])


def test_a_second_release_is_refused(cluster):
    refused = second_release(cluster)
    assert refused.returncode and f"is in this cluster already (release {SYSTEM_NAMESPACE}/headrace" in refused.stderr


def test_network_policies_are_valid(cluster, namespace):
    """The operator's, which is off by default, and the one that docs/operator.md shows."""
    page = (ROOT / "docs" / "operator.md").read_text()
    shown = yaml.safe_load(re.search(r"```yaml\n# NetworkPolicy\n(.*?)```", page, re.S)[1])
    values = ["--set", "networkPolicy.enabled=true", "--show-only", "templates/networkpolicy.yaml"]
    ours = yaml.safe_load(cluster.run("helm", "template", "headrace", str(CHART), *values).stdout)
    for policy in (shown, ours):
        policy["metadata"]["namespace"] = namespace
        cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=yaml.safe_dump(policy))


def test_helm_test_sees_data_delivered(cluster):
    cluster.run("helm", "test", "headrace", "-n", SYSTEM_NAMESPACE, "--timeout", "90s")
    left = [kind for kind in ("Job", "DistributedInput") if cluster.get(kind, "default", "headrace-helm-test")]
    assert not left, "a test that passed cleans up"
