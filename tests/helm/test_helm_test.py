"""files/helm_test.sh, which `helm test` runs in the cluster: that it can fail."""
import http.server
import os
import socket
import subprocess
import threading

import pytest

from chart import CHART


class Loader(http.server.BaseHTTPRequestHandler):
    """Serves metrics of a loader that has nothing in its ring at first."""

    def do_GET(self):
        self.server.requests += 1
        batches = 0 if self.server.requests < 3 else 2
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f'# TYPE x gauge\nheadrace_loader_ring_batches{{replica="0"}} {batches}\n'.encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def loader(tmp_path):
    server = http.server.HTTPServer(("127.0.0.1", 0), Loader)
    server.requests = 0
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))  # seconds until it sees its end
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def run(folder, port):
    variables = {"PATH": os.environ["PATH"], "PORT": str(port)} | ({"HEADRACE_DIR": str(folder)} if folder else {})
    return subprocess.run(["bash", CHART / "files" / "helm_test.sh"], env=variables, capture_output=True, text=True, timeout=30)


def listen(folder):
    endpoint = socket.socket(socket.AF_UNIX)
    endpoint.bind(str(folder / "loader.sock"))
    return endpoint


def test_passes_once_the_loader_delivers(loader, tmp_path):
    with listen(tmp_path):
        done = run(tmp_path, loader.server_port)
    assert (done.returncode, loader.requests) == (0, 3), done
    assert 'headrace_loader_ring_batches{replica="0"} 2' in done.stdout


def test_fails_where_the_webhook_did_nothing(loader):
    done = run(None, loader.server_port)
    assert done.returncode and "the webhook did not inject" in done.stderr


def test_fails_without_the_loaders_socket(loader, tmp_path):
    done = run(tmp_path, loader.server_port)
    assert done.returncode and "no loader listens" in done.stdout


def test_fails_where_the_loader_is_gone(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    with listen(tmp_path):
        done = run(tmp_path, port)
    assert done.returncode and "does not tell its metrics" in done.stdout
