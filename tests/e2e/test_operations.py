"""What operators of a cluster do to running jobs, on purpose or not."""
import workload
from cluster import SYSTEM_NAMESPACE

STEPS = 100
WORKERS = 2
REPLICAS = 2
BATCH = 8


def start_slow_job(cluster, namespace):
    """A Job of 100 steps that takes some seconds; returns its pods once each has printed ten steps."""
    spec = workload.range_spec(STEPS * BATCH, BATCH, replicasPerWorker=REPLICAS, autoShardPolicy="Data")
    cluster.create(workload.trainer_config_map(namespace), workload.distributed_input(namespace, "slow", spec))
    cluster.wait_condition(namespace, "slow", "Accepted", "True")
    cluster.create(workload.job(namespace, "trainer", "slow", WORKERS, environment={"STEP_SECONDS": "0.1"}))

    def printed_ten():
        pods = cluster.pods_of_job(namespace, "trainer")
        logs = [cluster.logs(namespace, pod["metadata"]["name"], "trainer", check=False) for pod in pods.values()]
        return pods if len(logs) == WORKERS and all(log.count('{"step"') >= 10 for log in logs) else None

    return cluster.wait_for("ten steps of each trainer", printed_ten, timeout=90)


def assert_every_batch_once(cluster, namespace, pods):
    """Policy Data cuts each global batch into equal pieces: worker w, replica r gets piece r * W + w of step s."""
    piece = BATCH // (WORKERS * REPLICAS)
    for worker, pod in pods.items():
        got = workload.printed_steps(cluster.logs(namespace, pod["metadata"]["name"], "trainer"))
        begin = lambda step, replica: step * BATCH + (replica * WORKERS + worker) * piece
        expected = [
            [list(range(begin(step, r), begin(step, r) + piece)) for r in range(REPLICAS)] for step in range(STEPS)
        ]
        assert got == expected


def test_killing_the_operator_disturbs_no_trainer(cluster, namespace):
    pods = start_slow_job(cluster, namespace)
    selector = "app.kubernetes.io/name=headrace-operator"
    before = {pod["metadata"]["uid"] for pod in cluster.list("Pod", SYSTEM_NAMESPACE, selector)}
    cluster.kubectl("delete", "pod", "-n", SYSTEM_NAMESPACE, "-l", selector, "--grace-period=0", "--force")

    cluster.wait_job(namespace, "trainer")
    assert_every_batch_once(cluster, namespace, pods)
    for pod in cluster.pods_of_job(namespace, "trainer").values():
        statuses = pod["status"]["initContainerStatuses"] + pod["status"]["containerStatuses"]
        assert all(status["restartCount"] == 0 for status in statuses)

    def back():
        now = cluster.list("Pod", SYSTEM_NAMESPACE, selector)
        ready = lambda pod: any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))
        return now and all(pod["metadata"]["uid"] not in before and ready(pod) for pod in now)

    cluster.wait_for("a new operator", back)


def test_killing_a_loader_loses_and_repeats_no_batch(cluster, namespace):
    pods = start_slow_job(cluster, namespace)
    victim = pods[1]["metadata"]["name"]
    cluster.kill_container(namespace, victim, "headrace-loader")
    cluster.wait_for(
        "the loader's restart",
        lambda: cluster.get("Pod", namespace, victim)["status"]["initContainerStatuses"][-1]["restartCount"] >= 1,
    )
    cluster.wait_job(namespace, "trainer")
    assert_every_batch_once(cluster, namespace, pods)


def test_deleting_an_input_deletes_what_it_owned(cluster, namespace):
    cluster.create(workload.distributed_input(namespace, "brief", workload.range_spec(8, 4)))
    cluster.wait_condition(namespace, "brief", "Ready", "True")
    owned = lambda kind: [
        item["metadata"]["name"]
        for item in cluster.list(kind, namespace)
        if any(owner["name"] == "brief" for owner in item["metadata"].get("ownerReferences", []))
    ]
    # Other tests' inputs may come first, but for the status.
    made = lambda: owned("Service") == ["brief-headrace"] and len(owned("ConfigMap")) == 1
    cluster.wait_for("its Service and ConfigMap", made)
    cluster.delete("DistributedInput", namespace, "brief")
    cluster.wait_for("its Service and ConfigMap to go", lambda: not owned("Service") and not owned("ConfigMap"))


def test_a_changed_spec_gets_a_new_plan_and_the_old_one_goes(cluster, namespace):
    cluster.create(workload.distributed_input(namespace, "grown", workload.range_spec(8, 4)))
    cluster.wait_condition(namespace, "grown", "Ready", "True")
    old = cluster.get("DistributedInput", namespace, "grown")["status"]["plan"]["configMap"]
    path = f"/apis/headrace.dev/v1alpha1/namespaces/{namespace}/distributedinputs/grown"
    change = {"spec": {"source": {"range": {"stop": 16}}}}
    cluster.request("PATCH", path, change, content_type="application/merge-patch+json")
    cluster.wait_condition(namespace, "grown", "Ready", "True")
    new = cluster.get("DistributedInput", namespace, "grown")["status"]["plan"]["configMap"]
    assert new != old
    cluster.wait_for("the old plan to go", lambda: cluster.get("ConfigMap", namespace, old) is None)
