"""The session's cluster: brought up once, the chart installed, taken down at the end.

HEADRACE_E2E_KEEP=1 leaves it up after the tests and uses a running one, for work on the tests.
"""
import os
import re
import subprocess

import pytest

from cluster import ROOT, SCRIPTS, SYSTEM_NAMESPACE, Cluster

KEEP = os.environ.get("HEADRACE_E2E_KEEP") == "1"


def _is_up():
    return subprocess.run([SCRIPTS / "run.sh", "kubectl", "get", "--raw", "/readyz"], capture_output=True).returncode == 0


@pytest.fixture(scope="session")
def bare_cluster(request):
    """The cluster without Headrace."""
    if not (KEEP and _is_up()):
        # Seen as they come: what pytest captures before it exits, it does not show.
        with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            done = subprocess.run([SCRIPTS / "up.sh"])
        if done.returncode:
            pytest.exit(f"tests/cluster/up.sh: exit status {done.returncode}, see its messages above", returncode=3)
    cluster = Cluster()
    yield cluster
    cluster.close()
    if not KEEP:
        subprocess.run([SCRIPTS / "down.sh"], check=True)


@pytest.fixture(scope="session")
def cluster(bare_cluster):
    """The cluster with the chart installed, as a user installs it."""
    bare_cluster.run(
        "helm", "upgrade", "--install", "headrace", str(ROOT / "helm" / "headrace"),
        "--namespace", SYSTEM_NAMESPACE, "--create-namespace", "--wait", "--timeout", "90s", timeout=120,
    )  # fmt: skip
    return bare_cluster


@pytest.fixture
def namespace(request, bare_cluster):
    """A fresh restricted namespace, named after the test."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:50].strip("-")
    return bare_cluster.make_namespace(name)


def pytest_collection_modifyitems(items):
    """What installs Headrace comes first: it begins without it."""
    items.sort(key=lambda item: item.path.name != "test_install.py")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.failed and call.when == "call":
        bare = item.funcargs.get("bare_cluster") or item.funcargs.get("cluster")
        name_space = item.funcargs.get("namespace") or getattr(item, "e2e_namespace", None)
        if bare and name_space:
            folder = ROOT / "build" / "reports" / "e2e" / name_space
            report.sections.append((f"cluster state, all of it in {folder.relative_to(ROOT)}", bare.dump(name_space, folder)))
