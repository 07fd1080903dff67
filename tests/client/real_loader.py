"""The loader in a process of its own, over a plan made of a spec, for tests and benchmarks in Python.

$HEADRACE_LOADER is its binary, $HEADRACE_MAKE_PLAN that of tests/loader/make_plan.cc.
"""

import json
import os
import signal
import subprocess
import tempfile


class RealLoader:
    """A worker's loader. Use it in a with statement; `directory` is what trainers connect to."""

    def __init__(self, spec, replicas=1):
        self._folder = tempfile.TemporaryDirectory(prefix="headrace-loader-", dir="/dev/shm")
        self.directory = os.path.join(self._folder.name, "run")
        os.mkdir(self.directory)
        plan = os.path.join(self._folder.name, "plan.json")
        with open(plan, "w") as file:
            subprocess.run([os.environ["HEADRACE_MAKE_PLAN"]], input=json.dumps(spec), stdout=file, text=True, check=True)
        self._environment = {
            **os.environ,
            "HEADRACE_PLAN": plan,
            "HEADRACE_DIR": self.directory,
            "HEADRACE_REPLICAS_PER_WORKER": str(replicas),
            "HEADRACE_RUN_ID": "run",
            "HEADRACE_SERVE_ERRORS": "1",
        }
        self._log = open(os.path.join(self._folder.name, "log"), "a")
        self._process = None
        self.start()

    def start(self):
        self._process = subprocess.Popen([os.environ["HEADRACE_LOADER"]], env=self._environment, stderr=self._log)

    def kill(self, with_signal=signal.SIGKILL):
        """Ends it and waits for that; what it wrote last is in log()."""
        self._process.send_signal(with_signal)
        return self._process.wait()

    def log(self):
        with open(self._log.name) as file:
            return file.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self._log.close()
        self._folder.cleanup()
