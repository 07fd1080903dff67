"""The chart as a whole: lint, the CRD, that package and checkout render alike, and that names agree."""
import json
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import yaml

from chart import CHART, NAMESPACE, ROOT, find, helm, render, template

EVERYTHING = yaml.safe_load((Path(__file__).parent / "everything.yaml").read_text())


class Chart(unittest.TestCase):
    def test_lint(self):
        helm("lint", "--strict", CHART)

    def test_crd_is_the_one_in_crds(self):
        source = yaml.safe_load((ROOT / "crds" / "headrace.dev_distributedinputs.yaml").read_text())
        kept = find(render(), "CustomResourceDefinition")
        self.assertEqual(kept["metadata"].pop("annotations"), {"helm.sh/resource-policy": "keep"})
        self.assertEqual(kept, source)
        self.assertEqual(find(render({"crds": {"keep": False}}), "CustomResourceDefinition"), source)

    def test_package_renders_as_the_checkout(self):
        with tempfile.TemporaryDirectory() as folder:
            helm("package", CHART, "--destination", folder)
            (package,) = Path(folder).iterdir()
            self.assertEqual(template(EVERYTHING, chart=package).stdout, template(EVERYTHING).stdout)

    def test_every_dashboard_is_shipped(self):
        maps = [o for o in render() if o["kind"] == "ConfigMap"]
        shipped = {name: json.loads(text) for o in maps for name, text in o["data"].items()}
        here = {p.name: json.loads(p.read_text()) for p in (ROOT / "dashboards").glob("*.json")}
        self.assertEqual(shipped, here)
        self.assertTrue(all(o["metadata"]["labels"]["grafana_dashboard"] == "1" for o in maps))

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

    def test_webhooks_see_what_opted_in_only(self):
        pods, jobs = find(render(), "MutatingWebhookConfiguration")["webhooks"]
        self.assertEqual(
            pods["objectSelector"], {"matchExpressions": [{"key": "headrace.dev/input", "operator": "Exists"}]}
        )
        self.assertEqual(jobs["objectSelector"], {"matchLabels": {"headrace.dev/inject-template": "true"}})
        for webhook in (pods, jobs):
            (expression,) = webhook["namespaceSelector"]["matchExpressions"]
            self.assertEqual(expression["operator"], "NotIn")
            self.assertEqual(set(expression["values"]), {"kube-system", "headrace-system"})
            self.assertEqual(webhook["failurePolicy"], "Fail")
            self.assertEqual(webhook["sideEffects"], "None")
            self.assertEqual(webhook["reinvocationPolicy"], "IfNeeded")
            self.assertEqual({operation for rule in webhook["rules"] for operation in rule["operations"]}, {"CREATE"})

    def test_labels_and_paths_are_those_of_the_code(self):
        names = (ROOT / "common" / "spec" / "names.h").read_text()
        pods, jobs = find(render(), "MutatingWebhookConfiguration")["webhooks"]
        policy = json.dumps(find(render(), "ValidatingAdmissionPolicy")["spec"])
        server = (ROOT / "operator" / "admission" / "server.h").read_text()
        for word in [*jobs["objectSelector"]["matchLabels"], *re.findall(r"'(headrace[^' ]*)'", policy)]:
            self.assertIn(f'"{word}"', names)
        for webhook in (pods, jobs):
            self.assertIn(f'"{webhook["clientConfig"]["service"]["path"]}"', server)

    def test_rendering_again_changes_nothing(self):
        self.assertEqual(template(EVERYTHING).stdout, template(EVERYTHING).stdout)

    def test_everything_optional_renders(self):
        kinds = {o["kind"] for o in render(EVERYTHING)}
        self.assertLessEqual(
            {"PodDisruptionBudget", "NetworkPolicy", "ServiceMonitor", "PodMonitor", "PrometheusRule"}, kinds
        )

    def test_the_alerts_are_those_of_the_file(self):
        source = yaml.safe_load((ROOT / "alerts" / "headrace.yaml").read_text())
        self.assertEqual(find(render(EVERYTHING), "PrometheusRule")["spec"], source)

    def test_two_releases_share_no_name(self):
        names = lambda objects: {
            (o["kind"], o["metadata"]["name"], o["metadata"].get("namespace")) for o in objects
            if o["kind"] != "CustomResourceDefinition"
        }
        here, there = render(), render(release="second", namespace="elsewhere")
        self.assertFalse(names(here) & names(there))

    def test_long_release_names_fit(self):
        for item in render(release="a" * 53):
            self.assertLessEqual(len(item["metadata"]["name"]), 63)

    def test_every_object_is_labelled(self):
        for item in render(EVERYTHING):
            if item["kind"] == "CustomResourceDefinition":
                continue
            labels = item["metadata"]["labels"]
            self.assertEqual(labels["app.kubernetes.io/instance"], "headrace", item["kind"])
            self.assertEqual(labels["app.kubernetes.io/part-of"], "headrace", item["kind"])

    def test_notes_tell_the_next_three_commands(self):
        done = helm("install", "headrace", CHART, "--namespace", NAMESPACE, "--dry-run=client", "--hide-notes=false")
        notes = done.stdout.split("NOTES:")[1]
        self.assertEqual(re.findall(r"^(\d)\. ", notes, re.M), ["1", "2", "3"])
        for command in ("kubectl -n headrace-system rollout status deployment/headrace-operator",
                        "helm test headrace --namespace headrace-system", "kubectl apply -f -"):
            self.assertIn(command, notes)
