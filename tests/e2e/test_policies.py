"""Every policy, in pods on two nodes: what each replica got is what TensorFlow gave for the same case."""
import pytest

import workload

# By policy, over files and over a range, with both cuts; two and three workers; empty files, repeats, pairs of components.
CASES = [
    "file-auto-f0_0_8_6_1_1_8-g12-w2r2-per-batch",
    "seed-predict-enumerate24-batch6-w2r2",
    "file-file-f8_2_3_7_9_7_6-g3-w2r2",
    "file-file-f3_12_10_4_8_4_4-g7-w3r2-per-batch",
    "data-files-f0_2_3-g3-w2r2",
    "data-data-n13-g15-w2r2",
    "repeat-before-off-f5_8_2_6-g2-w2r2",
    "off-n18-g14-w2r2-per-batch",
]


def namespace_of(name):
    return name.replace("_", "-")


@pytest.fixture(scope="module")
def jobs(cluster):
    """All Jobs at once: most of a Job's time is waiting for pods to start."""
    cases = {name: workload.conformance_case(name) for name in CASES}
    for name, case in cases.items():
        namespace = cluster.make_namespace(namespace_of(name))
        cluster.create(workload.trainer_config_map(namespace), *workload.objects_of_case(namespace, case))
    for name, case in cases.items():
        namespace = namespace_of(name)
        cluster.wait_condition(namespace, "case", "Accepted", "True")
        cluster.create(workload.job(namespace, "trainer", "case", case["workers"]))
    return cases


@pytest.mark.parametrize("name", CASES)
def test_replicas_get_what_tensorflow_gives(cluster, jobs, name, request):
    namespace, case = namespace_of(name), jobs[name]
    request.node.e2e_namespace = namespace
    cluster.wait_job(namespace, "trainer")

    pods = cluster.pods_of_job(namespace, "trainer")
    assert sorted(pods) == list(range(case["workers"]))
    assert len({pod["spec"]["nodeName"] for pod in pods.values()}) == 2
    got = [workload.printed_steps(cluster.logs(namespace, pods[w]["metadata"]["name"], "trainer")) for w in sorted(pods)]
    # Until the last worker's iterator ends, as TensorFlow's synchronised loop runs: with nothing from those that ended.
    nothing = [[] for _ in range(case["replicas_per_worker"])]
    steps = case["expect"]["steps"]
    assert got == [own + [nothing] * (case["expect"]["global_steps"] - len(own)) for own in steps]


def test_pods_end_with_their_sidecars(cluster, jobs, request):
    namespace = namespace_of(CASES[0])
    request.node.e2e_namespace = namespace
    cluster.wait_job(namespace, "trainer")
    for pod in cluster.pods_of_job(namespace, "trainer").values():
        assert pod["status"]["phase"] == "Succeeded"
        loader = next(c for c in pod["status"]["initContainerStatuses"] if c["name"] == "headrace-loader")
        assert loader["state"]["terminated"]["exitCode"] == 0, loader
        assert loader["restartCount"] == 0


def test_the_input_says_what_its_run_did(cluster, jobs, request):
    namespace, case = namespace_of(CASES[0]), jobs[CASES[0]]
    request.node.e2e_namespace = namespace
    cluster.wait_job(namespace, "trainer")
    item = cluster.get("DistributedInput", namespace, "case")
    (run,) = item["status"]["runs"]
    assert run["workersDesired"] == case["workers"]
    assert run["effectivePolicy"] == "File"
    assert "int64" in run["elementSpec"]
    plan = cluster.get("ConfigMap", namespace, item["status"]["plan"]["configMap"])
    assert plan["immutable"] is True
    assert item["status"]["plan"]["hash"] in plan["metadata"]["name"]
