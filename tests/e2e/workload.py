"""The objects that the tests apply: inputs from conformance cases, Jobs that print what their replicas got."""
import json
from pathlib import Path

import tfrecord
from cluster import ROOT, TRAINER_IMAGE, config_map

TRAINERS = Path(__file__).resolve().parent / "trainers"
CASES = ROOT / "tests" / "conformance" / "cases.jsonl"
POLICIES = {"AUTO": "Auto", "FILE": "File", "DATA": "Data", "OFF": "Off", "HINT": "Hint"}


def conformance_case(name):
    with CASES.open() as lines:
        for line in lines:
            case = json.loads(line)
            if case["name"] == name:
                return case
    raise KeyError(f"no conformance case {name}")


def _transformation(step):
    op = step["op"]
    if op == "batch":
        return {"batch": {"size": step["size"], "dropRemainder": step.get("drop_remainder", False)}}
    if op in ("repeat", "take", "skip"):
        return {op: {"count": step["count"]}}
    if op == "enumerate":
        return {"enumerate": {}}
    if op == "interleave":
        return {"interleave": {"cycleLength": step["cycle_length"], "blockLength": step["block_length"]}}
    raise ValueError(f"transformation {op} is not used by these tests")


def distributed_input(namespace, name, spec):
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "headrace.dev/v1alpha1", "kind": "DistributedInput", "metadata": metadata, "spec": spec}


def range_spec(stop, batch, **distribution):
    return {
        "source": {"range": {"stop": stop}},
        "pipeline": [{"batch": {"size": batch}}],
        "distribution": distribution,
    }


def files_spec(batch, **distribution):
    """Reads every .tfrecord file of the ConfigMap `data`."""
    return {
        "source": {"files": {"paths": ["*.tfrecord"], "volume": {"configMap": {"name": "data"}}}},
        "features": [{"name": "x", "dtype": "int64", "shape": []}],
        "pipeline": [{"batch": {"size": batch}}],
        "distribution": distribution,
    }


def objects_of_case(namespace, case):
    """The ConfigMap of the case's files (if any) and its DistributedInput, named `case`."""
    source = case["source"]
    spec = range_spec(0, 1) if source["kind"] == "range" else files_spec(1)
    objects = []
    if source["kind"] == "range":
        spec["source"]["range"]["stop"] = source["count"]
    else:
        files = {f"part-{i:03}.tfrecord": tfrecord.file_of(values) for i, values in enumerate(source["files"])}
        objects.append(config_map(namespace, "data", files))
    spec["pipeline"] = [_transformation(step) for step in case["transforms"]]
    spec["distribution"] = {
        "autoShardPolicy": POLICIES[case["policy"]],
        "rebatch": case["rebatch"] or "PerBatch",
        "replicasPerWorker": case["replicas_per_worker"],
    }
    return [*objects, distributed_input(namespace, "case", spec)]


def trainer_config_map(namespace):
    files = {path.name: path.read_bytes() for path in TRAINERS.glob("*.py")}
    return config_map(namespace, "trainers", files)


def job(namespace, name, input_name, workers, script="print_values.py", environment=None):
    """An Indexed Job of `workers` pods spread over the nodes; script is one of trainers/."""
    security = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True}
    container = {
        "name": "trainer",
        "image": TRAINER_IMAGE,
        "imagePullPolicy": "Never",
        "command": ["python3", "-u", f"/trainers/{script}"],
        "env": [{"name": key, "value": str(value)} for key, value in (environment or {}).items()],
        "volumeMounts": [{"name": "trainers", "mountPath": "/trainers"}],
        "securityContext": security,
    }
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"job": name}},
    }
    pod = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 5,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
        "topologySpreadConstraints": [spread],
        "containers": [container],
        "volumes": [{"name": "trainers", "configMap": {"name": "trainers"}}],
    }
    labels = {"headrace.dev/input": input_name, "job": name}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "completions": workers,
            "parallelism": workers,
            "completionMode": "Indexed",
            "backoffLimit": 0,
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def pod_of(job, namespace):
    """A pod by itself, as the Job would make it."""
    template = job["spec"]["template"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "lonely", "namespace": namespace, "labels": template["metadata"]["labels"]},
        "spec": template["spec"],
    }


def printed_steps(log):
    """The steps that a print_values.py trainer printed: steps[s][r] is the list of values of replica r."""
    steps = [json.loads(line) for line in log.splitlines() if line.startswith('{"step"')]
    assert [step["step"] for step in steps] == list(range(len(steps))), f"steps out of order: {steps}"
    return [step["replicas"] for step in steps]
