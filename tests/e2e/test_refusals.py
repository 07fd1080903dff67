"""What is wrong is refused, at the earliest place that can know, with a message that names it."""
import pytest

import workload
from cluster import ApiError


def refused(cluster, *objects):
    with pytest.raises(ApiError) as caught:
        cluster.create(*objects)
    return caught.value


def with_change(spec, path, value):
    """The spec with the field at path (a list of keys) set."""
    at = spec
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return spec


@pytest.mark.parametrize(
    "path, value, message",
    [
        (["distribution", "autoShardPolcy"], "File", 'unknown field "spec.distribution.autoShardPolcy"'),
        (["pipeline", 0, "batch", "size"], 0, "spec.pipeline[0].batch.size"),
        (["distribution", "autoShardPolicy"], "Fil", "spec.distribution.autoShardPolicy"),
        (["source", "range"], {"stop": 5}, "exactly one source"),
        (["pipeline", 0], {"shuffle": {"scope": "Global", "bufferSize": 4}}, "bufferSize"),
        (["distribution", "replicasPerWorker"], 0, "spec.distribution.replicasPerWorker"),
    ],
    ids=["misspelt", "batch-zero", "unknown-policy", "two-sources", "global-with-buffer", "no-replicas"],
)
def test_the_api_server_refuses(cluster, namespace, path, value, message):
    spec = with_change(workload.files_spec(8, autoShardPolicy="File"), path, value)
    error = refused(cluster, workload.distributed_input(namespace, "bad", spec))
    assert message in error.message


def not_accepted(cluster, namespace):
    """An input that the schema lets through and the operator does not accept."""
    spec = workload.range_spec(8, 4)
    spec["source"] = {"tensors": [{"name": "x", "dtype": "int64", "shape": [3], "values": [1, 2]}]}
    cluster.create(workload.distributed_input(namespace, "bad", spec))
    return cluster.wait_condition(namespace, "bad", "Accepted", "False")


def test_the_operator_says_why_it_does_not_accept(cluster, namespace):
    condition = not_accepted(cluster, namespace)
    assert condition["reason"] == "InvalidSpec"
    assert "spec.source.tensors[0]" in condition["message"]
    assert cluster.condition(namespace, "bad", "Ready")["status"] == "False"


def test_the_operator_says_what_it_may_not_make(cluster, namespace):
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "tight"}, "spec": {"hard": {"services": "0"}}}
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    cluster.request("POST", path, quota)
    cluster.wait_for("the quota", lambda: cluster.request("GET", path + "/tight").get("status", {}).get("hard"))
    cluster.create(workload.distributed_input(namespace, "clicks", workload.range_spec(8, 4)))
    refusals = cluster.wait_for(
        "an event",
        lambda: [event["note"] for event in cluster.list("Event", namespace) if event["reason"] == "ApplyFailed"],
    )
    assert "exceeded quota: tight" in refusals[0]
    # Without another word it goes on when it may.
    cluster.request("DELETE", path + "/tight")
    cluster.wait_condition(namespace, "clicks", "Accepted", "True")


def test_a_pod_that_names_no_input_is_refused(cluster, namespace):
    cluster.create(workload.distributed_input(namespace, "clicks", workload.range_spec(8, 4)))
    cluster.wait_condition(namespace, "clicks", "Accepted", "True")
    error = refused(cluster, workload.pod_of(workload.job(namespace, "j", "click", 1), namespace))
    assert 'no DistributedInput "click"' in error.message
    assert "clicks" in error.message  # what may have been meant


def test_a_pod_that_names_a_refused_input_is_refused(cluster, namespace):
    not_accepted(cluster, namespace)
    error = refused(cluster, workload.pod_of(workload.job(namespace, "j", "bad", 1), namespace))
    assert "not Accepted" in error.message
    assert "spec.source.tensors[0]" in error.message
