"""The CRD on a real API server: every spec of tests/crds/specs.yaml, and what may and may not change."""
from pathlib import Path

import pytest
import yaml

import workload
from cluster import PLURALS, ApiError

SPECS = yaml.safe_load((Path(__file__).resolve().parents[1] / "crds" / "specs.yaml").read_text())
VOLUME = {"persistentVolumeClaim": {"claimName": "a"}}
FILES = {"source": {"files": {"paths": ["a"], "volume": VOLUME}}, "features": [{"name": "x"}]}


def dry_run(cluster, namespace, spec, name="case"):
    path = PLURALS["DistributedInput"].format(namespace) + "?fieldValidation=Strict&dryRun=All"
    return cluster.request("POST", path, workload.distributed_input(namespace, name, spec))


def by_about(*lists):
    return [pytest.param(case, id=case["about"].replace(" ", "-")) for name in lists for case in SPECS[name]]


@pytest.mark.parametrize("case", by_about("accepted"))
def test_accepted(cluster, case):
    stored = dry_run(cluster, "default", case["spec"])
    assert stored["spec"]["distribution"]["rebatch"], "defaults are stored"


@pytest.mark.parametrize("case", by_about("refused", "refused_by_schema"))
def test_refused(cluster, case):
    with pytest.raises(ApiError) as caught:
        dry_run(cluster, "default", case["spec"])
    assert case["message"] in caught.value.message


@pytest.mark.parametrize("name", ["1st", "a.b", "a" * 55])
def test_names_that_no_service_can_carry(cluster, name):
    with pytest.raises(ApiError) as caught:
        dry_run(cluster, "default", {"source": {"range": {"stop": 1}}}, name)
    assert "metadata.name must be at most 54 characters" in caught.value.message


@pytest.mark.parametrize(
    "change, message",
    [
        ({"source": {"files": {"volume": {"persistentVolumeClaim": {"claimName": "b"}}}}}, "volume is immutable"),
        ({"source": {"files": {"volume": None}}}, "volume cannot be added or removed"),
        ({"source": {"files": None, "range": {"stop": 1}}, "features": []}, "the kind of source cannot change"),
        ({"source": {"files": {"paths": ["b"]}}, "pipeline": [{"batch": {"size": 4}}]}, None),
    ],
    ids=["other-volume", "no-volume", "other-source", "other-paths"],
)
def test_what_can_change(cluster, namespace, change, message):
    cluster.create(workload.distributed_input(namespace, "case", FILES))
    path = PLURALS["DistributedInput"].format(namespace) + "/case?fieldValidation=Strict"
    patch = lambda: cluster.request("PATCH", path, {"spec": change}, "application/merge-patch+json")
    if message is None:
        assert patch()["metadata"]["generation"] == 2
        return
    with pytest.raises(ApiError) as caught:
        patch()
    assert message in caught.value.message
