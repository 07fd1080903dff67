"""`make push`: the images in a real registry, and a command that installs exactly those."""
import json
import re
import shlex
import subprocess
import threading
from urllib.request import Request, urlopen

import pytest

from cluster import ROOT, unpacked

CONFIG = """
version: 0.1
log: {level: info, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: %s}}
http: {addr: "127.0.0.1:0"}
"""
MANIFEST = "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json"


def get(address, path, accept="application/json"):
    """(the JSON there, its headers)"""
    with urlopen(Request(f"http://{address}{path}", headers={"Accept": accept}), timeout=10) as reply:
        return json.load(reply), reply.headers


@pytest.fixture
def registry(tmp_path):
    config = tmp_path / "config.yml"
    config.write_text(CONFIG % (tmp_path / "storage"))
    server = subprocess.Popen([unpacked("docker-registry"), "serve", config], stderr=subprocess.PIPE, text=True)
    try:
        said = []
        for line in server.stderr:
            said.append(line)
            listens = re.search(r"listening on (127\.0\.0\.1:\d+)", line)
            if listens:
                break
        else:
            pytest.fail(f"the registry did not start: {''.join(said)}")
        threading.Thread(target=server.stderr.read, daemon=True).start()  # so that it never waits for a reader
        yield listens[1]
    finally:
        server.terminate()
        server.wait()


def push(*arguments):
    return subprocess.run([ROOT / "images/build.sh", "push", *arguments], capture_output=True, text=True)


def test_pushes_what_the_chart_installs(registry, bare_cluster):
    done = push(f"{registry}/team", "--tls-verify=false")
    assert done.returncode == 0, done.stderr

    values = dict(re.findall(r"([a-z.]+)=([^,\s]+)", done.stdout))
    for image, program in (("image", "headrace-operator"), ("loader.image", "headrace-loader")):
        assert values[f"{image}.repository"] == f"{registry}/team/{program}"
        manifest, headers = get(registry, f"/v2/team/{program}/manifests/{values[f'{image}.digest']}", MANIFEST)
        tagged, by_tag = get(registry, f"/v2/team/{program}/manifests/0.1.0", MANIFEST)
        assert headers["Docker-Content-Digest"] == by_tag["Docker-Content-Digest"] == values[f"{image}.digest"]
        config, _ = get(registry, f"/v2/team/{program}/blobs/{manifest['config']['digest']}")
        assert config["config"]["Entrypoint"] == [f"/usr/local/bin/{program}"]
        assert config["config"]["User"] == "65532:65532"
        assert tagged == manifest

    # The command as it is printed, but for the cluster: the chart takes those values, and asks for those images.
    command = shlex.split(done.stdout.replace("\\\n", "").replace("helm/headrace", str(ROOT / "helm/headrace")))
    assert command[:2] == ["helm", "install"]
    rendered = bare_cluster.run("helm", "template", *command[2:]).stdout
    for image in ("image", "loader.image"):
        assert f"{values[f'{image}.repository']}@{values[f'{image}.digest']}" in rendered


def test_says_what_to_do_where_it_is_refused():
    done = push("127.0.0.1:1/team", "--tls-verify=false")
    assert done.returncode != 0
    assert "127.0.0.1:1/team/headrace-operator:0.1.0 was not pushed" in done.stderr
    assert "buildah login 127.0.0.1:1" in done.stderr
