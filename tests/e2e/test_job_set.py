"""A JobSet's Jobs, labelled and owned as its controller makes them: one driver, and workers in two Jobs of two pods. What the
controller does is done here; the pods run for real.
"""
import hashlib

import pytest

import workload
from cluster import ApiError

GROUP, VERSION = "jobset.x-k8s.io", "v1alpha2"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PREFIX = "jobset.sigs.k8s.io/"
SET = "train"
REPLICATED = {"driver": (1, 1), "workers": (2, 2)}  # Jobs, and pods of each
STEPS, BATCH = 5, 8


@pytest.fixture
def job_set(cluster, namespace):
    """A JobSet that is an object and no more."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"jobsets.{GROUP}"},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "names": {"plural": "jobsets", "kind": "JobSet"},
            "versions": [{"name": VERSION, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }  # fmt: skip
    cluster.request("POST", CRDS, crd)
    body = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "JobSet", "metadata": {"name": SET}}

    def created():
        try:
            return cluster.request("POST", f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/jobsets", body)
        except ApiError as error:
            assert error.code == 404, error  # the API server does not serve them yet
            return None

    yield cluster.wait_for("JobSets to be served", created)
    cluster.request("DELETE", f"{CRDS}/jobsets.{GROUP}")


def headless_service(namespace):
    metadata = {"name": SET, "namespace": namespace}
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {f"{PREFIX}jobset-name": SET}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def jobs_of(job_set, namespace):
    """Each Job, as JobSet makes it, by replicated job and index."""
    every = [(name, i) for name, (jobs, _) in REPLICATED.items() for i in range(jobs)]
    for global_index, (replicated, index) in enumerate(every):
        jobs, pods = REPLICATED[replicated]
        name = f"{SET}-{replicated}-{index}"
        labels = {
            PREFIX + key: str(value)
            for key, value in {
                "jobset-name": SET,
                "jobset-uid": job_set["metadata"]["uid"],
                "replicatedjob-name": replicated,
                "replicatedjob-replicas": jobs,
                "global-replicas": len(every),
                "job-index": index,
                "job-global-index": global_index,
                "job-key": hashlib.sha1(f"{namespace}/{name}".encode()).hexdigest(),
                "restart-attempt": 0,
            }.items()
        }
        owner = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "JobSet", "name": SET, "uid": job_set["metadata"]["uid"]}
        job = workload.job(namespace, name, "clicks", pods)
        job["metadata"] |= {"labels": labels, "annotations": labels, "ownerReferences": [owner | {"controller": True}]}
        template = job["spec"]["template"]
        template["metadata"] |= {"labels": template["metadata"]["labels"] | labels, "annotations": labels}
        template["spec"]["subdomain"] = SET
        yield job


def test_its_workers_are_numbered_through_and_fed_to_the_end(cluster, namespace, job_set):
    spec = workload.range_spec(STEPS * BATCH, BATCH, autoShardPolicy="Data")
    cluster.create(workload.trainer_config_map(namespace), headless_service(namespace))
    cluster.create(workload.distributed_input(namespace, "clicks", spec))
    cluster.wait_condition(namespace, "clicks", "Accepted", "True")
    cluster.create(*jobs_of(job_set, namespace))

    got = {}
    for replicated, (jobs, pods) in REPLICATED.items():
        for index in range(jobs):
            job = f"{SET}-{replicated}-{index}"
            cluster.wait_job(namespace, job)
            for within, pod in cluster.pods_of_job(namespace, job).items():
                log = cluster.logs(namespace, pod["metadata"]["name"], "trainer")
                got[replicated, index * pods + within] = workload.printed_steps(log)
    # Those of one replicated job share each global batch, in equal pieces, and know nothing of the others.
    expected = {}
    for replicated, (jobs, pods) in REPLICATED.items():
        piece = BATCH // (jobs * pods)
        for worker in range(jobs * pods):
            begins = [step * BATCH + worker * piece for step in range(STEPS)]
            expected[replicated, worker] = [[list(range(begin, begin + piece))] for begin in begins]
    assert got == expected

    runs = cluster.get("DistributedInput", namespace, "clicks")["status"]["runs"]
    size = {run["owner"]: (run["workersDesired"], run["uid"]) for run in runs}
    uid = job_set["metadata"]["uid"]
    assert size == {
        f"JobSet/{SET}/driver": (1, f"{uid}/driver/0"),
        f"JobSet/{SET}/workers": (4, f"{uid}/workers/0"),
    }
