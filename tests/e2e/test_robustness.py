"""What a control plane goes through, while pods are created all the time: none may come without its loader."""
import subprocess
import threading

import pytest

import workload
from cluster import SCRIPTS, SYSTEM_NAMESPACE, ApiError

OPERATOR = "app.kubernetes.io/name=headrace-operator"
SECRET = f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/secrets/headrace-webhook-certificate"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/headrace-webhook"


def unschedulable_pod(namespace, name, input_name):
    """A pod that stays an object."""
    pod = workload.pod_of(workload.job(namespace, "none", input_name, 1), namespace)
    pod["metadata"]["name"] = name
    pod["spec"]["nodeSelector"] = {"headrace.test/nowhere": "x"}
    return pod


class Stream:
    """Creates pods, one after another, each until the API server has taken it."""

    def __init__(self, cluster, namespace):
        self._cluster, self._namespace = cluster, namespace
        self.created = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def _run(self):
        while not self._over.is_set():
            try:
                self._cluster.create(unschedulable_pod(self._namespace, f"pod-{self.created}", "clicks"))
            except ApiError as error:
                if error.code != 409:  # 409: created, though the answer was lost
                    self._over.wait(0.1)  # as a Job's controller tries again
                    continue
            except (OSError, ValueError):
                self._over.wait(0.1)
                continue
            self.created += 1

    def await_more(self, count=10, timeout=150):
        """Until so many more were created than there are now: the webhook works."""
        want = self.created + count
        self._cluster.wait_for(f"{count} more pods", lambda: self.created >= want, timeout)


def restart(part):
    subprocess.run([SCRIPTS / "restart.sh", part], check=True)


def cut_connections(cluster):
    """Resets every connection to the API server, the watches of the operators among them."""
    killed = cluster.run("ss", "--no-header", "--kill", "--tcp", "state", "established", "sport", "=", ":6443").stdout
    assert len(killed.splitlines()) > 4, f"this kernel cuts no connections: {killed!r}"


def rotate_certificates(cluster):
    before = cluster.request("GET", SECRET)["data"]["ca.crt"]
    cluster.request("DELETE", SECRET)

    def renewed():
        try:
            authority = cluster.request("GET", SECRET)["data"]["ca.crt"]
        except ApiError:
            return False
        bundles = [webhook["clientConfig"]["caBundle"] for webhook in cluster.request("GET", WEBHOOKS)["webhooks"]]
        return authority != before and len(set(bundles)) == 1 and bundles[0] != before

    cluster.wait_for("a new certificate authority", renewed, timeout=90)


def operators(cluster):
    pods = cluster.list("Pod", SYSTEM_NAMESPACE, OPERATOR)
    restarts = lambda pod: [status["restartCount"] for status in pod["status"]["containerStatuses"]]
    return {pod["metadata"]["uid"]: restarts(pod) for pod in pods}


def test_no_pod_comes_without_its_loader_whatever_happens(cluster, namespace):
    cluster.create(workload.distributed_input(namespace, "clicks", workload.range_spec(8, 4)))
    cluster.wait_condition(namespace, "clicks", "Accepted", "True")
    before = operators(cluster)
    with Stream(cluster, namespace) as stream:
        stream.await_more()
        for harm in (
            lambda: restart("apiserver"),
            lambda: restart("etcd"),
            lambda: cut_connections(cluster),
            lambda: rotate_certificates(cluster),
        ):
            harm()
            stream.await_more()
    pods = cluster.list("Pod", namespace)
    assert len(pods) >= stream.created
    loaders = lambda pod: [c["name"] for c in pod["spec"].get("initContainers", []) if c.get("restartPolicy") == "Always"]
    assert [pod["metadata"]["name"] for pod in pods if loaders(pod) != ["headrace-loader"]] == []
    assert operators(cluster) == before
    # Everything converges: what is made now is judged, and the runs of all pods are known.
    cluster.create(workload.distributed_input(namespace, "later", workload.range_spec(8, 4)))
    cluster.wait_condition(namespace, "later", "Accepted", "True")
    waits = lambda: (cluster.condition(namespace, "clicks", "Ready") or {}).get("reason") == "LoadersStarting"
    cluster.wait_for("the pods in the input's status", waits)


@pytest.fixture
def webhook_off(cluster, namespace):
    """The mutating webhook passes by this namespace, as if another had undone what it did."""
    webhooks = cluster.request("GET", WEBHOOKS)["webhooks"]
    away = [{"op": "add", "path": f"/webhooks/{i}/matchConditions",
             "value": [{"name": "elsewhere", "expression": f"request.namespace != '{namespace}'"}]}
            for i in range(len(webhooks))]  # fmt: skip
    cluster.request("PATCH", WEBHOOKS, away, content_type="application/json-patch+json")
    yield
    back = [{"op": "remove", "path": f"/webhooks/{i}/matchConditions"} for i in range(len(webhooks))]
    cluster.request("PATCH", WEBHOOKS, back, content_type="application/json-patch+json")


def test_a_pod_whose_loader_was_stripped_is_refused(cluster, namespace, webhook_off):
    whole = unschedulable_pod(namespace, "stripped", "clicks")

    def refusal(pod):
        try:
            cluster.create(pod)
        except ApiError as error:
            assert error.code in (403, 422), error
            return error.message
        cluster.delete("Pod", namespace, "stripped")
        return None

    # The API server takes a moment to see the webhook's change, in which it refuses for want of the input.
    message = lambda: (refusal(whole) or "") if "no native sidecar" in (refusal(whole) or "") else None
    assert 'names the DistributedInput "clicks"' in cluster.wait_for("the policy's word", message, timeout=30)

    # A loader that is no native sidecar any more: a webhook that knew no restartPolicy of init containers wrote it anew.
    loader = dict(whole["spec"]["containers"][0], name="headrace-loader")
    demoted = dict(whole, spec=dict(whole["spec"], initContainers=[loader]))
    assert "no native sidecar" in (refusal(demoted) or "accepted")

    # A native sidecar, but nobody mounts the volume from which batches come.
    unmounted = dict(whole, spec=dict(whole["spec"], initContainers=[dict(loader, restartPolicy="Always")]))
    assert "volume headrace-run" in (refusal(unmounted) or "accepted")
