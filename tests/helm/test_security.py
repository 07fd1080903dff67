"""Every pod that the chart makes passes the restricted Pod Security Standard; rights are as narrow as they can be."""
from pathlib import Path

import pytest
import yaml

from chart import find, pod_specs, render

EVERYTHING = yaml.safe_load((Path(__file__).parent / "everything.yaml").read_text())


@pytest.fixture(scope="module")
def objects():
    return render(EVERYTHING)


def test_every_pod_is_restricted(objects):
    pods = dict(pod_specs(objects))
    assert set(pods) == {"Deployment headrace-operator", "Job headrace-helm-test"}
    for where, pod in pods.items():
        assert pod["securityContext"]["runAsNonRoot"] is True, where
        assert pod["securityContext"]["runAsUser"] > 0, where
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, where
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod), where
        assert all(set(volume) - {"name"} <= {"configMap", "emptyDir", "secret"} for volume in pod.get("volumes", [])), where
        for container in [*pod.get("initContainers", []), *pod["containers"]]:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False, where
            assert context["readOnlyRootFilesystem"] is True, where
            assert context["capabilities"] == {"drop": ["ALL"]}, where
            assert not any("hostPort" in port for port in container.get("ports", [])), where
            assert container["resources"]["requests"] and container["resources"]["limits"]["memory"], where


def test_pods_take_our_images_alone(objects):
    images = {c["image"] for _, pod in pod_specs(objects) for c in pod["containers"]}
    assert images == {"docker.io/headrace/operator:0.1.0", "docker.io/headrace/loader:0.1.0"}


def test_only_the_operator_has_a_token(objects):
    without = [where for where, pod in pod_specs(objects) if pod.get("automountServiceAccountToken") is False]
    assert without == ["Job headrace-helm-test"]


def test_the_tests_pod_is_none_of_the_operators(objects):
    """Its labels are selected by no Service, budget, policy or monitor of the operator."""
    labels = find(objects, "Job")["spec"]["template"]["metadata"]["labels"].items()
    for kind, path in (("Service", ("selector",)), ("PodDisruptionBudget", ("selector", "matchLabels")),
                       ("NetworkPolicy", ("podSelector", "matchLabels")), ("Deployment", ("selector", "matchLabels"))):
        selector = find(objects, kind)["spec"]
        for key in path:
            selector = selector[key]
        assert selector and not selector.items() <= labels, kind


def test_rights_are_narrow(objects):
    for role in (o for o in objects if o["kind"] in ("ClusterRole", "Role")):
        for rule in role["rules"]:
            if "nonResourceURLs" in rule:
                assert rule == {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
                continue
            assert "*" not in rule["verbs"] + rule["resources"] + rule["apiGroups"]
            if "secrets" in rule["resources"]:  # by name, never a list of them
                assert set(rule["verbs"]) <= {"get", "create", "update", "patch"}
                assert rule["resources"] == ["secrets"]
                if role["kind"] == "ClusterRole":
                    assert set(rule["verbs"]) == {"get", "create", "update"}
            if "pods" in rule["resources"]:
                assert set(rule["verbs"]) == {"get", "list", "watch"}
