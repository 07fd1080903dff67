"""Of two operators one leads: what happens when that one ends, as it is told to or without a word."""
import signal

import pytest

import workload
from cluster import SYSTEM_NAMESPACE

LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM_NAMESPACE}/leases/headrace-operator"
PODS = f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/pods"
OPERATOR = "app.kubernetes.io/name=headrace-operator"


def leader(cluster):
    """The name of its pod; empty while nobody leads."""
    return cluster.request("GET", LEASE)["spec"].get("holderIdentity", "")


def ready_operators(cluster):
    is_ready = lambda pod: any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))
    pods = cluster.list("Pod", SYSTEM_NAMESPACE, OPERATOR)
    return {pod["metadata"]["name"] for pod in pods if is_ready(pod) and "deletionTimestamp" not in pod["metadata"]}


@pytest.fixture
def led(cluster):
    """The leader's pod, once there is a standby beside it. Two are ready again at the end."""
    two_ready = lambda: len(ready_operators(cluster)) == 2
    cluster.wait_for("two operators", two_ready)
    yield cluster.wait_for("a leader", lambda: leader(cluster) in ready_operators(cluster) and leader(cluster))
    cluster.wait_for("two operators", two_ready)


def test_a_leader_told_to_end_gives_its_lease_to_the_standby(cluster, namespace, led):
    cluster.kill_container(SYSTEM_NAMESPACE, led, "operator", signal.SIGTERM)
    cluster.wait_for("the standby to lead", lambda: leader(cluster) not in ("", led), timeout=1)
    cluster.create(workload.distributed_input(namespace, "after", workload.range_spec(8, 4)))
    cluster.wait_condition(namespace, "after", "Accepted", "True")
    # The kubelet starts it again, as a standby.
    restarts = lambda: cluster.request("GET", f"{PODS}/{led}")["status"]["containerStatuses"][0]["restartCount"]
    cluster.wait_for("its restart", lambda: restarts() > 0)


def test_a_killed_leader_is_replaced_when_its_lease_is_over(cluster, namespace, led):
    cluster.kill_container(SYSTEM_NAMESPACE, led, "operator", signal.SIGKILL)
    # Before the kubelet starts it anew: under its old name, it would go on with its lease.
    cluster.request("DELETE", f"{PODS}/{led}?gracePeriodSeconds=0")
    cluster.create(workload.distributed_input(namespace, "orphan", workload.range_spec(8, 4)))
    cluster.wait_condition(namespace, "orphan", "Accepted", "True", timeout=17)
    assert leader(cluster) not in ("", led)
