"""The API server of tests/cluster, called from inside its network: connections kept by thread, many calls at a time."""
import http.client
import json
import os
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

RUN = Path(os.environ["HEADRACE_CLUSTER_RUN"])
ADDRESS, PORT = "10.90.0.1", 6443


class Api:
    def __init__(self):
        self._tls = ssl.create_default_context(cafile=RUN / "pki" / "ca.crt")
        self._tls.load_cert_chain(RUN / "pki" / "admin.crt", RUN / "pki" / "admin.key")
        self._own = threading.local()

    def call(self, method, path, body=None, content_type="application/json"):
        """The parsed answer, or its text where it is not JSON; the status comes first. Tries again where the connection ended."""
        headers = {"Content-Type": content_type, "Accept": "application/json"}
        data = json.dumps(body) if body is not None else None
        for attempt in range(3):
            connection = getattr(self._own, "connection", None)
            if connection is None:
                connection = http.client.HTTPSConnection(ADDRESS, PORT, context=self._tls, timeout=60)
                self._own.connection = connection
            try:
                connection.request(method, path, data, headers)
                answer = connection.getresponse()
                text = answer.read().decode()
                is_json = "json" in (answer.getheader("Content-Type") or "")
                return answer.status, json.loads(text) if is_json else text
            except (OSError, http.client.HTTPException):
                connection.close()
                self._own.connection = None
                if attempt == 2:
                    raise

    def must(self, method, path, body=None, **options):
        status, answer = self.call(method, path, body, **options)
        if status >= 400:
            raise RuntimeError(f"{method} {path}: {status}: {answer}")
        return answer

    def create_all(self, what, path, objects, count, threads=12):
        """Creates them, showing progress."""
        done, began = 0, time.monotonic()

        def create(item):
            nonlocal done
            self.must("POST", path, item)
            done += 1
            if done % max(1, count // 10) == 0:
                print(f"  {done} of {count} {what}, {time.monotonic() - began:.0f} s", flush=True)

        with ThreadPoolExecutor(threads) as pool:
            for _ in pool.map(create, objects):
                pass


def metrics(address, port):
    """The samples of an operator's /metrics: {"name{labels}": value}."""
    connection = http.client.HTTPConnection(address, port, timeout=10)
    try:
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
    finally:
        connection.close()
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if line and line[0] != "#"}


def quantile(before, after, name, part):
    """The upper bound, in seconds, of the histogram's bucket in which this part of what came in between ends."""
    counts = {}
    for key, value in after.items():
        if key.startswith(name + "_bucket") and 'le="' in key:
            bound = float(key.split('le="')[1].split('"')[0].replace("+Inf", "inf"))
            counts[bound] = counts.get(bound, 0) + value - before.get(key, 0)
    total = counts.get(float("inf"), 0)
    return next((bound for bound in sorted(counts) if total and counts[bound] >= part * total), float("nan"))
