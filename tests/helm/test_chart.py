"""The chart: lint, what it renders, and that package and checkout render alike. Runs with the end-to-end tests, whose helm it uses."""
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "helm" / "headrace"
CACHE = Path(os.environ.get("HEADRACE_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headrace")
HELM = CACHE / "cluster" / "bin" / "helm"


def helm(*arguments, check=True):
    done = subprocess.run([str(HELM), *map(str, arguments)], capture_output=True, text=True)
    if check and done.returncode:
        raise AssertionError(f"helm {arguments}: {done.stderr}")
    return done


def render(*arguments, chart=CHART):
    text = helm("template", "headrace", chart, "--namespace", "headrace-system", *arguments).stdout
    return [document for document in yaml.safe_load_all(text) if document]


def find(objects, kind, name=None):
    found = [o for o in objects if o["kind"] == kind and name in (None, o["metadata"]["name"])]
    assert len(found) == 1, f"{len(found)} objects of kind {kind}, name {name}"
    return found[0]


class Chart(unittest.TestCase):
    def test_lint(self):
        helm("lint", "--strict", CHART)

    def test_crd_is_the_one_in_crds(self):
        source = yaml.safe_load((ROOT / "crds" / "headrace.dev_distributedinputs.yaml").read_text())
        kept = find(render(), "CustomResourceDefinition")
        self.assertEqual(kept["metadata"].pop("annotations"), {"helm.sh/resource-policy": "keep"})
        self.assertEqual(kept, source)
        self.assertEqual(find(render("--set", "crds.keep=false"), "CustomResourceDefinition"), source)
        self.assertFalse([o for o in render("--set", "crds.enabled=false") if o["kind"] == "CustomResourceDefinition"])

    def test_package_renders_as_the_checkout(self):
        with tempfile.TemporaryDirectory() as folder:
            helm("package", CHART, "--destination", folder)
            (package,) = Path(folder).iterdir()
            self.assertEqual(render(chart=package), render())

    def test_every_dashboard_is_shipped(self):
        maps = [o for o in render() if o["kind"] == "ConfigMap"]
        shipped = {name: json.loads(text) for o in maps for name, text in o["data"].items()}
        here = {p.name: json.loads(p.read_text()) for p in (ROOT / "dashboards").glob("*.json")}
        self.assertEqual(shipped, here)
        self.assertTrue(all(o["metadata"]["labels"]["grafana_dashboard"] == "1" for o in maps))

    def test_operator_passes_restricted(self):
        pod = find(render(), "Deployment")["spec"]["template"]["spec"]
        self.assertTrue(pod["securityContext"]["runAsNonRoot"])
        self.assertEqual(pod["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
        for container in pod["containers"]:
            context = container["securityContext"]
            self.assertIs(context["allowPrivilegeEscalation"], False)
            self.assertIs(context["readOnlyRootFilesystem"], True)
            self.assertEqual(context["capabilities"], {"drop": ["ALL"]})
            self.assertIn("requests", container["resources"])

    def test_flags_are_those_of_the_operator(self):
        known = (ROOT / "operator" / "config.cc").read_text()
        for argument in find(render(), "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]:
            name = argument.removeprefix("--").split("=")[0]
            self.assertIn(f'{{"{name}",', known, f"operator/config.cc does not know --{name}")

    def test_names_agree(self):
        objects = render()
        arguments = dict(
            a.removeprefix("--").split("=", 1)
            for a in find(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]
        )
        webhook = find(objects, "MutatingWebhookConfiguration", arguments["webhook-configuration"])["webhooks"][0]
        service = find(objects, "Service", arguments["webhook-service"])
        self.assertEqual(webhook["clientConfig"]["service"]["name"], service["metadata"]["name"])
        self.assertIn(webhook["clientConfig"]["service"]["port"], [p["port"] for p in service["spec"]["ports"]])
        role = find(objects, "Role")
        names = {name for rule in role["rules"] for name in rule.get("resourceNames", [])}
        self.assertEqual(names, {arguments["certificate-secret"], arguments["lease"]})

    def test_webhook_sees_opted_in_pods_only(self):
        webhook = find(render(), "MutatingWebhookConfiguration")["webhooks"][0]
        self.assertEqual(
            webhook["objectSelector"], {"matchExpressions": [{"key": "headrace.dev/input", "operator": "Exists"}]}
        )
        (expression,) = webhook["namespaceSelector"]["matchExpressions"]
        self.assertEqual(expression["operator"], "NotIn")
        self.assertEqual(set(expression["values"]), {"kube-system", "headrace-system"})
        self.assertEqual(webhook["failurePolicy"], "Fail")
        self.assertEqual(webhook["sideEffects"], "None")
        self.assertEqual(webhook["reinvocationPolicy"], "IfNeeded")
        self.assertEqual([rule["operations"] for rule in webhook["rules"]], [["CREATE"]])

    def test_rights_are_narrow(self):
        for role in (o for o in render() if o["kind"] in ("ClusterRole", "Role")):
            for rule in role["rules"]:
                self.assertNotIn("*", rule["verbs"] + rule["resources"] + rule["apiGroups"])
                if "secrets" in rule["resources"]:  # by name, never a list of them
                    self.assertLessEqual(set(rule["verbs"]), {"get", "create", "update", "patch"})
                    self.assertEqual(rule["resources"], ["secrets"])
                if role["kind"] == "ClusterRole" and "secrets" in rule["resources"]:
                    self.assertEqual(set(rule["verbs"]), {"get", "create", "update"})
                if "pods" in rule["resources"]:
                    self.assertEqual(set(rule["verbs"]), {"get", "list", "watch"})

    def test_everything_optional_renders(self):
        switches = ["podDisruptionBudget.enabled", "networkPolicy.enabled", "monitoring.serviceMonitor.enabled",
                    "monitoring.podMonitor.enabled"]
        arguments = [part for switch in switches for part in ("--set", f"{switch}=true")]
        kinds = {o["kind"] for o in render(*arguments)}
        self.assertLessEqual({"PodDisruptionBudget", "NetworkPolicy", "ServiceMonitor", "PodMonitor"}, kinds)

    def test_misspelt_values_are_refused(self):
        done = helm("template", "headrace", CHART, "--set", "replica=1", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("replica", done.stderr)

    def test_digest_wins_over_tag(self):
        digest = "sha256:" + "0" * 64
        pod = find(render("--set", f"image.digest={digest}"), "Deployment")["spec"]["template"]["spec"]
        self.assertTrue(pod["containers"][0]["image"].endswith("@" + digest))

