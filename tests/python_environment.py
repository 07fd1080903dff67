"""Python environments of tests that need more than the setup installs: pinned packages with hashes, in the cache."""
import os
import subprocess
import sys
from pathlib import Path

CACHE = Path(os.environ.get("HEADRACE_CACHE") or
             Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headrace")


def environment(name, requirements, base=None):
    """The interpreter of $CACHE/`name`, made of the file `requirements` when that changed.

    `base`: an interpreter that this returned for another environment, whose packages this one sees too.
    """
    venv, wanted = CACHE / name, requirements.read_text() + (str(base) if base else "")
    stamp = venv / "requirements.txt"
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"making the Python environment {venv}", file=sys.stderr, flush=True)
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--clear", venv], check=True)
        if base:
            (packages,) = (base.parent.parent / "lib").glob("python3*/site-packages")
            (own,) = (venv / "lib").glob("python3*/site-packages")
            (own / "base.pth").write_text(f"{packages}\n")
        subprocess.run([venv / "bin" / "pip", "install", "-q", "--disable-pip-version-check", "--only-binary", ":all:",
                        "--require-hashes", "-r", requirements], check=True)
        stamp.write_text(wanted)
    return venv / "bin" / "python"
