"""One real cluster for all tests: commands, API calls, waiting on real state, and what to show when a test fails."""
import base64
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))
from python_environment import CACHE  # noqa: E402

SCRIPTS = ROOT / "tests" / "cluster"
RUN_DIR = Path(os.environ.get("HEADRACE_CLUSTER_RUN", "/var/tmp/headrace-cluster"))
TRAINER_IMAGE = "docker.io/headrace/digits-trainer:0.1.0"
SYSTEM_NAMESPACE = "headrace-system"

PLURALS = {
    "Pod": "/api/v1/namespaces/{}/pods",
    "Service": "/api/v1/namespaces/{}/services",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Event": "/apis/events.k8s.io/v1/namespaces/{}/events",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims",
    "ResourceClaimTemplate": "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaimtemplates",
    "DistributedInput": "/apis/headrace.dev/v1alpha1/namespaces/{}/distributedinputs",
}


def unpacked(server):
    """The program of that name, as it is installed or as scripts/setup.sh unpacked it."""
    return shutil.which(server) or CACHE / server / "usr" / "bin" / server


class ApiError(Exception):
    """The API server refused; `status` is its Status object."""

    def __init__(self, code, status):
        super().__init__(f"{code}: {status.get('message', status)}")
        self.code = code
        self.status = status
        self.message = status.get("message", "")


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        # A machine that has just built everything was seen to stand still for 30 s while it wrote that to its disk.
        super().__init__("localhost", timeout=90)
        self._path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Cluster:
    """Starts `kubectl proxy` on a Unix socket: the test process stays outside the cluster's network namespaces."""

    def __init__(self):
        self._socket = RUN_DIR / "api.sock"
        self._socket.unlink(missing_ok=True)
        self._proxy = subprocess.Popen(
            [SCRIPTS / "run.sh", "kubectl", "proxy", f"--unix-socket={self._socket}"], stdout=subprocess.DEVNULL
        )
        self.wait_for("kubectl proxy", lambda: self._socket.exists(), timeout=20)

    def close(self):
        self._proxy.terminate()
        self._proxy.wait()

    def run(self, *command, stdin=None, check=True, timeout=120):
        """Runs a command inside the control plane's namespace, with KUBECONFIG set; returns the completed process."""
        done = subprocess.run(
            [SCRIPTS / "run.sh", *command], input=stdin, capture_output=True, text=True, timeout=timeout
        )
        if check and done.returncode:
            raise AssertionError(f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}")
        return done

    def kubectl(self, *arguments, **options):
        return self.run("kubectl", *arguments, **options).stdout

    def request(self, method, path, body=None, content_type="application/json"):
        """One API call; returns the parsed answer, or the text where it is not JSON. Raises ApiError from 400 up, OSError without an answer."""
        connection = _UnixConnection(self._socket)
        try:
            headers = {"Content-Type": content_type, "Accept": "application/json"}
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        except http.client.HTTPException as error:  # an answer that broke off
            raise ConnectionError(f"{method} {path}: {error!r}") from error
        finally:
            connection.close()
        is_json = "json" in (answer.getheader("Content-Type") or "")
        if answer.status >= 400:
            raise ApiError(answer.status, json.loads(text) if is_json else {"message": text})
        return json.loads(text) if is_json else text

    def get(self, kind, namespace, name):
        """The object, or None if there is none."""
        try:
            return self.request("GET", PLURALS[kind].format(namespace) + "/" + name)
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    def list(self, kind, namespace, selector=""):
        query = f"?labelSelector={selector.replace('=', '%3D')}" if selector else ""
        return self.request("GET", PLURALS[kind].format(namespace) + query)["items"]

    def create(self, *objects):
        """Creates in order, with strict field checks as kubectl does; returns the last object."""
        for item in objects:
            path = PLURALS[item["kind"]].format(item["metadata"]["namespace"])
            created = self.request("POST", path + "?fieldValidation=Strict", item)
        return created

    def delete(self, kind, namespace, name):
        self.request("DELETE", PLURALS[kind].format(namespace) + "/" + name + "?propagationPolicy=Background")

    def make_namespace(self, name):
        """A namespace under the restricted Pod Security Standard, so that every test proves that our pods meet it."""
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        self.request("POST", "/api/v1/namespaces", body)
        self.wait_for(
            f"service account of {name}",
            lambda: self.request("GET", f"/api/v1/namespaces/{name}/serviceaccounts")["items"],
        )
        return name

    @staticmethod
    def wait_for(what, probe, timeout=60):
        """Polls until probe() is true and returns its value. A failed assertion in probe ends the wait at once."""
        deadline = time.monotonic() + timeout
        while True:
            value = probe()
            if value:
                return value
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {timeout} s in vain for {what}; last: {value!r}")
            time.sleep(0.1)

    def condition(self, namespace, name, type_):
        """A condition of a DistributedInput that speaks of its present generation, or None."""
        item = self.get("DistributedInput", namespace, name)
        if item is None:
            return None
        for condition in item.get("status", {}).get("conditions", []):
            if condition["type"] == type_ and condition.get("observedGeneration") == item["metadata"]["generation"]:
                return condition
        return None

    def wait_condition(self, namespace, name, type_, status, timeout=30):
        def probe():
            condition = self.condition(namespace, name, type_)
            return condition if condition and condition["status"] == status else None

        return self.wait_for(f"{type_}={status} of {namespace}/{name}", probe, timeout)

    def logs(self, namespace, pod, container, **options):
        return self.kubectl("logs", "-n", namespace, pod, "-c", container, **options)

    def wait_job(self, namespace, name, timeout=120):
        """Waits for the Job to complete; a failed Job ends the wait."""

        def probe():
            for condition in self.get("Job", namespace, name).get("status", {}).get("conditions", []):
                if condition["type"] == "Failed" and condition["status"] == "True":
                    raise AssertionError(f"Job {namespace}/{name} failed: {condition.get('message')}")
                if condition["type"] == "Complete" and condition["status"] == "True":
                    return True
            return False

        self.wait_for(f"Job {namespace}/{name}", probe, timeout)

    def pods_of_job(self, namespace, name):
        """The Job's pods by completion index."""
        index = "batch.kubernetes.io/job-completion-index"
        pods = self.list("Pod", namespace, f"batch.kubernetes.io/job-name={name}")
        return {int(pod["metadata"]["annotations"][index]): pod for pod in pods}

    def metrics(self, namespace, pod, port=9464):
        return self.request("GET", f"/api/v1/namespaces/{namespace}/pods/{pod}:{port}/proxy/metrics")

    def kill_container(self, namespace, pod, container, number=signal.SIGKILL):
        """Sends a signal to a container's processes, from the machine, found by its cgroup. Returns their number."""
        status = self.get("Pod", namespace, pod)["status"]
        both = status.get("initContainerStatuses", []) + status.get("containerStatuses", [])
        identity = next(item["containerID"] for item in both if item["name"] == container).rsplit("/", 1)[1]
        pids = set()
        for procs in Path("/sys/fs/cgroup").glob(f"**/headrace/n*/kubepods/**/{identity}/cgroup.procs"):
            pids.update(int(line) for line in procs.read_text().split())
        assert pids, f"no process of container {container} of {namespace}/{pod} ({identity})"
        for pid in pids:
            os.kill(pid, number)
        return len(pids)

    def dump(self, namespace, folder):
        """Writes what a reader needs to understand a failure into `folder`, and returns the most telling part."""
        folder.mkdir(parents=True, exist_ok=True)
        commands = {
            "inputs.yaml": ("get", "distributedinputs", "-n", namespace, "-o", "yaml"),
            "pods.txt": ("describe", "pods", "-n", namespace),
            "events.txt": ("get", "events", "-n", namespace, "--sort-by=.lastTimestamp"),
            "system.txt": ("describe", "pods", "-n", SYSTEM_NAMESPACE),
            "operator.log": ("logs", "-n", SYSTEM_NAMESPACE, "-l", "app.kubernetes.io/name=headrace-operator", "--tail=300"),
        }
        for name, command in commands.items():
            done = self.run("kubectl", *command, check=False)
            (folder / name).write_text(done.stdout + done.stderr)
        for pod in self.list("Pod", namespace):
            name = pod["metadata"]["name"]
            done = self.run("kubectl", "logs", "-n", namespace, name, "--all-containers", "--prefix", check=False)
            (folder / f"{name}.log").write_text(done.stdout + done.stderr)
        parts = [folder / "events.txt", *sorted(folder.glob("*.log"))]
        return "\n".join(f"--- {part.name}\n" + "\n".join(part.read_text().splitlines()[-25:]) for part in parts)


def config_map(namespace, name, files):
    """A ConfigMap of the given files (name -> bytes)."""
    data = {key: base64.b64encode(value).decode() for key, value in files.items()}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "binaryData": data}
