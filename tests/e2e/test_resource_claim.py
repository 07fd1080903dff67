"""A GPU for loader and trainer by one resource claim, with a driver of simulated GPUs (tests/cluster/dra_driver).

What a loader does with a real one is no matter of these tests: with memory Auto it finds no CUDA driver here and feeds
from host memory, its claim in hand.
"""
import json
import subprocess

import pytest

import workload
from cluster import ROOT, RUN_DIR, SCRIPTS, ApiError

DRIVER = "gpu.example.com"  # and the name of its DeviceClass


@pytest.fixture(scope="module")
def gpus(cluster):
    """The simulated GPUs of all nodes: (pool, device) -> UUID."""
    subprocess.run([SCRIPTS / "simulated_gpus.sh"], check=True)
    slices = cluster.request("GET", "/apis/resource.k8s.io/v1/resourceslices")["items"]
    return {
        (item["spec"]["pool"]["name"], device["name"]): device["attributes"]["uuid"]["string"]
        for item in slices
        if item["spec"]["driver"] == DRIVER
        for device in item["spec"]["devices"]
    }


def template(namespace):
    requests = [{"name": "gpu", "exactly": {"deviceClassName": DRIVER}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "one-gpu", "namespace": namespace},
        "spec": {"spec": {"devices": {"requests": requests}}},
    }


def start_input(cluster, namespace, **delivery):
    spec = workload.range_spec(8, 4) | {"delivery": delivery}
    cluster.create(
        workload.trainer_config_map(namespace), template(namespace), workload.distributed_input(namespace, "fed", spec)
    )
    cluster.wait_condition(namespace, "fed", "Accepted", "True")


def job_with_claim(namespace, workers, trainer_names_it):
    job = workload.job(namespace, "trainer", "fed", workers, script="hold_devices.py")
    pod = job["spec"]["template"]["spec"]
    pod["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    if trainer_names_it:
        pod["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    return job


def two_pods(cluster, namespace, job):
    cluster.wait_for(f"two pods of {job}", lambda: len(cluster.pods_of_job(namespace, job)) == 2)
    return cluster.pods_of_job(namespace, job).values()


def printed(cluster, namespace, pod, key):
    """What the trainer's JSON line with that key says; None before it is there."""
    for line in cluster.logs(namespace, pod, "trainer", check=False).splitlines():
        if line.startswith("{") and key in json.loads(line):
            return json.loads(line)[key]
    return None


def environment(cluster, namespace, pod, container):
    """The variables of simulated GPUs in a running container."""
    lines = cluster.kubectl("exec", "-n", namespace, pod, "-c", container, "--", "env").splitlines()
    return dict(line.split("=", 1) for line in lines if line.startswith("SIMULATED_"))


def cdi_files():
    return {path.name for node in ("n1", "n2") for path in (RUN_DIR / node / "cdi").glob("*.json")}


@pytest.mark.parametrize("trainer_names_it", [True, False], ids=["named-by-the-trainer", "added-to-the-trainer"])
def test_one_claim_in_both_containers(cluster, gpus, namespace, trainer_names_it):
    start_input(cluster, namespace, resourceClaim="gpu")
    cluster.create(job_with_claim(namespace, 2, trainer_names_it))
    seen = set()
    for pod in two_pods(cluster, namespace, "trainer"):
        name, uid, spec = pod["metadata"]["name"], pod["metadata"]["uid"], pod["spec"]
        loader = next(container for container in spec["initContainers"] if container["name"] == "headrace-loader")
        assert spec["containers"][0]["resources"]["claims"] == loader["resources"]["claims"] == [{"name": "gpu"}]
        assert loader["securityContext"]["runAsUser"] == 1000, "as the trainer"

        # Fed to the end, while it has its claim: 8 records in global batches of 4.
        steps = cluster.wait_for(f"{name} to have read its data", lambda: printed(cluster, namespace, name, "steps"), timeout=90)
        assert steps == 2

        statuses = cluster.get("Pod", namespace, name)["status"]["resourceClaimStatuses"]
        assert [status["name"] for status in statuses] == ["gpu"]
        status = cluster.get("ResourceClaim", namespace, statuses[0]["resourceClaimName"])["status"]
        assert [(user["resource"], user["uid"]) for user in status["reservedFor"]] == [("pods", uid)]
        (result,) = status["allocation"]["devices"]["results"]
        assert result["driver"] == DRIVER
        uuid = gpus[result["pool"], result["device"]]
        seen.add(uuid)

        in_trainer = printed(cluster, namespace, name, "devices")
        in_loader = environment(cluster, namespace, name, "headrace-loader")
        assert in_trainer == in_loader, "both containers have the same device"
        assert list(in_trainer.values()) == [uuid], "which is the one that the scheduler chose, and no other"
    assert len(seen) == 2, "each worker has a GPU of its own"

    assert cdi_files()
    cluster.delete("Job", namespace, "trainer")
    cluster.wait_for("the claims to go", lambda: not cluster.list("ResourceClaim", namespace))
    cluster.wait_for("the driver to be told", lambda: not cdi_files())


def test_device_finds_the_only_claim_and_speaks_of_mps(cluster, namespace):
    start_input(cluster, namespace, memory="Device")
    message = cluster.condition(namespace, "fed", "Accepted")["message"]
    assert "spec.distribution.replicasPerWorker: is left out" in message
    pod = workload.pod_of(job_with_claim(namespace, 1, False), namespace)
    done = cluster.run("kubectl", "create", "--dry-run=server", "-o", "json", "-f", "-", stdin=json.dumps(pod))
    spec = json.loads(done.stdout)["spec"]
    assert spec["initContainers"][0]["resources"]["claims"] == [{"name": "gpu"}]
    assert spec["containers"][0]["resources"]["claims"] == [{"name": "gpu"}]
    assert 'Warning: headrace: loader and trainers share the GPUs of claim "gpu": without MPS they take turns' in done.stderr


def test_the_example_of_the_documentation(cluster, namespace):
    text = (ROOT / "docs" / "operator.md").read_text()
    example = text.split("## One GPU for loader and trainers")[1].split("```yaml\n")[1].split("```")[0]
    cluster.kubectl("apply", "-n", namespace, "-f", "-", stdin=example)
    # Without GPUs of that class its pods are not scheduled, and stay as they were admitted.
    for pod in two_pods(cluster, namespace, "train"):
        containers = pod["spec"]["initContainers"] + pod["spec"]["containers"]
        assert [container["name"] for container in containers] == ["headrace-loader", "trainer"]
        assert all(container["resources"]["claims"] == [{"name": "gpu"}] for container in containers)
    cluster.delete("Job", namespace, "train")


def refusal(cluster, pod):
    with pytest.raises(ApiError) as caught:
        cluster.create(pod)
    return caught.value.message


def test_device_refuses_what_the_loader_could_not_share(cluster, namespace):
    start_input(cluster, namespace, memory="Device")
    plain = workload.job(namespace, "trainer", "fed", 1)
    assert "spec.resourceClaims: the pod has none" in refusal(cluster, workload.pod_of(plain, namespace))
    plain["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    message = refusal(cluster, workload.pod_of(plain, namespace))
    assert 'container "trainer" has nvidia.com/gpu: "1", which gives a GPU to this container alone' in message
    assert "spec.resourceClaims: [{name: gpu, resourceClaimTemplateName: TEMPLATE}]" in message
