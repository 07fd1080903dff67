"""The user's dataset function, in a container of its own beside the loader of every worker."""
import workload
from cluster import TRAINER_IMAGE


def function_spec(**environment):
    container = {
        "image": TRAINER_IMAGE,
        "imagePullPolicy": "Never",
        "command": ["python3", "-u", "/trainers/dataset_function.py"],
        "env": [{"name": name, "value": value} for name, value in environment.items()],
        "volumeMounts": [{"name": "trainers", "mountPath": "/trainers"}],
        "securityContext": {"runAsUser": 1000},
    }
    return {"source": {"function": {"container": container}}}


def start(cluster, namespace, **environment):
    cluster.create(
        workload.trainer_config_map(namespace),
        workload.distributed_input(namespace, "function", function_spec(**environment)),
    )
    cluster.wait_condition(namespace, "function", "Accepted", "True")
    cluster.create(workload.job(namespace, "trainer", "function", 2))


def test_what_it_yields_is_what_the_replicas_get(cluster, namespace):
    start(cluster, namespace)
    cluster.wait_job(namespace, "trainer")
    pods = cluster.pods_of_job(namespace, "trainer")
    got = [workload.printed_steps(cluster.logs(namespace, pods[w]["metadata"]["name"], "trainer")) for w in (0, 1)]
    # Worker 0 has two batches, worker 1 four: both end after four steps.
    assert got[0] == [[[0, 0]], [[1, 1]], [[]], [[]]]
    assert got[1] == [[[10, 10]], [[11, 11]], [[12, 12]], [[13, 13]]]
    item = cluster.get("DistributedInput", namespace, "function")
    assert item["status"]["summary"]["source"] == "function"


def test_what_it_raises_reaches_object_and_trainers(cluster, namespace):
    start(cluster, namespace, FAIL_AT="1")
    degraded = cluster.wait_condition(namespace, "function", "Degraded", "True", timeout=60)
    assert "ValueError: the disk is on fire (dataset_function.py:" in degraded["message"]
    for pod in cluster.pods_of_job(namespace, "trainer").values():
        name = pod["metadata"]["name"]
        cluster.wait_for(f"{name} to print the error", lambda: '"error"' in cluster.logs(namespace, name, "trainer", check=False))
        assert "the disk is on fire" in cluster.logs(namespace, name, "trainer", check=False)
