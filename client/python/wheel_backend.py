"""Build backend of the package (PEP 517): packs what the project's own release build made, so nothing is built twice.

    python3 -m pip wheel --no-deps --wheel-dir dist client/python        (or: cmake --build build/release --target wheel)
"""

import base64
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MODULE = "_native.abi3.so"
# Debian 12, Ubuntu 22.04 and what came after them: the newest symbols that all of them have (PEP 600).
PLATFORM = "manylinux_2_35"
NEWEST = {"GLIBC": "2.35", "GLIBCXX": "3.4.30", "CXXABI": "1.3.13"}


def get_requires_for_build_wheel(config_settings=None):
    return []


def build_sdist(sdist_directory, config_settings=None):
    raise RuntimeError("a source distribution would be the whole repository: build a wheel from a checkout")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    build = ROOT / "build" / "release"
    subprocess.run(["cmake", "--preset", "release", f"-DPython_EXECUTABLE={sys.executable}"], cwd=ROOT, check=True)
    subprocess.run(["cmake", "--build", str(build), "--target", "headrace_python_native"], check=True)
    return pack(build, Path(wheel_directory))


def stable_abi(requires_python):
    """The tag of the oldest CPython: "cp311" of ">=3.11,<3.16"."""
    return "cp" + "".join(re.match(r">=(\d+)\.(\d+)", requires_python).groups())


def too_new(symbols):
    """The versions in `symbols` (of objdump -T) that a system of PLATFORM does not have."""
    found = set(re.findall(r"\b(GLIBC|GLIBCXX|CXXABI)_([0-9.]+)", symbols))
    return sorted(f"{name}_{version}" for name, version in found if numbers(version) > numbers(NEWEST[name]))


def numbers(version):
    return [int(number) for number in version.split(".")]


def platform_tag(library):
    """PLATFORM's tag, by which pip refuses the wheel where it could not be loaded."""
    symbols = subprocess.run(["objdump", "-T", library], check=True, capture_output=True, text=True).stdout
    if too_new(symbols):
        raise RuntimeError(f"{library} needs {', '.join(too_new(symbols))}, which {PLATFORM} does not have: build it on Debian 12")
    return f"{PLATFORM}_{platform.machine()}"


def pack(build, wheel_directory):
    """Packs the package that lies in the build tree. Returns the wheel's file name."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    name, version = project["name"], project["version"]
    declared = re.search(r"project\(headrace VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
    if version != declared:
        raise RuntimeError(f"pyproject.toml says version {version}, CMakeLists.txt {declared}: make them equal")
    package = build / "python" / "headrace"
    tag = f"{stable_abi(project['requires-python'])}-abi3-{platform_tag(package / MODULE)}"
    info = f"{name}-{version}.dist-info"
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

        stripped = os.path.join(scratch, MODULE)
        shutil.copy(package / MODULE, stripped)
        subprocess.run(["strip", "--strip-unneeded", stripped], check=True)
        add(f"headrace/{MODULE}", Path(stripped).read_bytes(), 0o755)
        for source in sorted((HERE / "headrace").iterdir()):
            if source.suffix == ".py" or source.name == "py.typed":
                add(f"headrace/{source.name}", source.read_bytes())
        for part in sorted((package / "_backend").iterdir()):
            if part.is_file():
                add(f"headrace/_backend/{part.name}", part.read_bytes(), 0o755 if part.suffix == ".so" else 0o644)
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
    directory = Path(sys.argv[2])
    for earlier in directory.glob("headrace-*.whl"):  # what images/ copies is the only one there
        earlier.unlink()
    print(directory / pack(Path(sys.argv[1]), directory))
