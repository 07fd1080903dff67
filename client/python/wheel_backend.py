"""Build backend of the package (PEP 517): packs what the project's own release build made, so nothing is built twice.

    python3 -m pip wheel --no-deps --wheel-dir dist client/python        (or: cmake --build build/release --target wheel)
"""

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def get_requires_for_build_wheel(config_settings=None):
    return []


def build_sdist(sdist_directory, config_settings=None):
    raise RuntimeError("a source distribution would be the whole repository: build a wheel from a checkout")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    build = ROOT / "build" / "release"
    subprocess.run(["cmake", "--preset", "release", f"-DPython_EXECUTABLE={sys.executable}"], cwd=ROOT, check=True)
    subprocess.run(["cmake", "--build", str(build), "--target", "headrace_python_native"], check=True)
    return pack(build, Path(wheel_directory))


def pack(build, wheel_directory):
    """Packs the package that lies in the build tree. Returns the wheel's file name."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    name, version = project["name"], project["version"]
    declared = re.search(r"project\(headrace VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
    if version != declared:
        raise RuntimeError(f"pyproject.toml says version {version}, CMakeLists.txt {declared}: make them equal")
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    tag = f"{python}-{python}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
    info = f"{name}-{version}.dist-info"
    module = f"_native{sysconfig.get_config_var('EXT_SUFFIX')}"
    records = []
    wheel_directory.mkdir(parents=True, exist_ok=True)
    wheel = wheel_directory / f"{name}-{version}-{tag}.whl"
    with tempfile.TemporaryDirectory() as scratch, zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:

        def add(path, content, mode=0o644):
            # The same bytes give the same wheel: no time stamps.
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            records.append(f"{path},sha256={digest},{len(content)}")

        stripped = os.path.join(scratch, module)
        shutil.copy(build / "python" / "headrace" / module, stripped)
        subprocess.run(["strip", "--strip-unneeded", stripped], check=True)
        add(f"headrace/{module}", Path(stripped).read_bytes(), 0o755)
        for source in sorted((HERE / "headrace").iterdir()):
            if source.suffix == ".py" or source.name == "py.typed":
                add(f"headrace/{source.name}", source.read_bytes())
        metadata = (
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {project['description']}\n"
            f"Requires-Python: {project['requires-python']}\n"
        )
        add(f"{info}/METADATA", metadata.encode())
        add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: headrace\nRoot-Is-Purelib: false\nTag: {tag}\n".encode())
        records.append(f"{info}/RECORD,,\n")
        archive.writestr(zipfile.ZipInfo(f"{info}/RECORD", (1980, 1, 1, 0, 0, 0)), "\n".join(records))
    return wheel.name


if __name__ == "__main__":  # wheel_backend.py BUILD_DIRECTORY WHEEL_DIRECTORY
    print(Path(sys.argv[2]) / pack(Path(sys.argv[1]), Path(sys.argv[2])))
