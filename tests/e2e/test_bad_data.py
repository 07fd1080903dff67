"""Bad data: a clear error at the object and at the trainer, within seconds, and nothing hangs."""
import json
from datetime import datetime

import pytest

import tfrecord
import workload
from cluster import config_map

LIMIT_SECONDS = 5
GOOD = tfrecord.file_of(range(8))
RECORD = len(tfrecord.file_of([0]))


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


BAD = {
    # name: files, workers, policy, what the message must hold
    "no-file": ({"other.txt": b""}, 1, "Off", ["spec.source.files.paths", "*.tfrecord"]),
    "too-few-files": ({"a.tfrecord": GOOD}, 2, "File", ["2", "1", "Data"]),
    "truncated": ({"a.tfrecord": GOOD[:-5]}, 1, "Off", ["a.tfrecord", str(7 * RECORD)]),
    "bad-crc": ({"a.tfrecord": flipped(GOOD, 3 * RECORD + 14)}, 1, "Off", ["a.tfrecord", str(3 * RECORD), "checksum"]),
}


def seconds_between(begin, end):
    parse = lambda text: datetime.fromisoformat(text.replace("Z", "+00:00"))
    return (parse(end) - parse(begin)).total_seconds()


def failed_job(cluster, namespace):
    def probe():
        conditions = cluster.get("Job", namespace, "trainer").get("status", {}).get("conditions", [])
        return any(c["type"] == "Failed" and c["status"] == "True" for c in conditions)

    cluster.wait_for("the Job to fail", probe, timeout=60)


@pytest.mark.parametrize("name", BAD)
def test_the_error_reaches_object_and_trainer(cluster, namespace, name):
    files, workers, policy, fragments = BAD[name]
    cluster.create(
        workload.trainer_config_map(namespace),
        config_map(namespace, "data", files),
        workload.distributed_input(namespace, "bad", workload.files_spec(4, autoShardPolicy=policy)),
    )
    cluster.wait_condition(namespace, "bad", "Accepted", "True")
    cluster.create(workload.job(namespace, "trainer", "bad", workers))

    degraded = cluster.wait_condition(namespace, "bad", "Degraded", "True", timeout=60)
    for fragment in fragments:
        assert fragment in degraded["message"]
    failed_job(cluster, namespace)

    errors = []
    for pod in cluster.pods_of_job(namespace, "trainer").values():
        log = cluster.logs(namespace, pod["metadata"]["name"], "trainer", check=False)
        errors += [json.loads(line) for line in log.splitlines() if line.startswith('{"error"')]
    assert errors, "no trainer got an exception"
    for error in errors:
        for fragment in fragments:
            assert fragment in error["error"]

    # Soon: the trainer from its connect() on, or the object from the loader's first start on.
    loader = pod["status"]["initContainerStatuses"][-1]
    first = loader.get("lastState", {}).get("terminated") or loader["state"]["terminated"]
    at_object = seconds_between(first["startedAt"], degraded["lastTransitionTime"])
    assert min(at_object, max(error["seconds"] for error in errors)) <= LIMIT_SECONDS
