"""scripts/bundle.sh: what the chart renders, without what only Helm reads."""
import subprocess

import pytest
import yaml

from chart import ROOT, render

HELMS = {"helm.sh/chart", "app.kubernetes.io/managed-by"}


@pytest.fixture(scope="module")
def bundle():
    subprocess.run([ROOT / "scripts" / "bundle.sh"], check=True, capture_output=True)
    text = (ROOT / "dist" / "headrace.yaml").read_text()
    return text, [item for item in yaml.load_all(text, yaml.CSafeLoader) if item]


def test_it_is_what_the_chart_installs(bundle):
    def plain(value):
        if isinstance(value, list):
            return [plain(item) for item in value]
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items() if key not in HELMS}
        return value

    _, (namespace, *objects) = bundle
    assert namespace["kind"] == "Namespace"
    installed = [o for o in render({"crds": {"keep": False}}) if "helm.sh/hook" not in o["metadata"].get("annotations", {})]
    assert plain(objects) == plain(installed)


def test_it_speaks_of_helm_nowhere(bundle):
    text, _ = bundle
    assert "helm.sh" not in text and "managed-by: Helm" not in text


def test_what_others_stand_on_comes_first(bundle):
    _, objects = bundle
    kinds = [o["kind"] for o in objects]
    assert kinds[0] == "Namespace"
    assert kinds.index("CustomResourceDefinition") < kinds.index("Deployment")
    assert kinds.index("ServiceAccount") < kinds.index("Deployment")
