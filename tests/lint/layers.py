"""Who may include whom. The table is the architecture; a folder that is not in it may not hold code."""

import os

import tree as lint

BASE, SPEC, NET, RING, GPU = "common/base", "common/spec", "common/net", "common/ring", "common/gpu"

# A folder's files may include its own headers and those of the folders named here (not of their subfolders).
ALLOWED = {
    BASE: [],
    SPEC: [BASE],
    NET: [BASE],
    RING: [BASE, SPEC],
    GPU: [BASE],
    "client": [BASE, SPEC, RING, GPU, "client/include/headrace"],
    "client/include/headrace": [],
    "client/python/src": ["client/include/headrace"],
    "sidecar/core": [BASE, SPEC],
    "sidecar/collective": [BASE, SPEC],
    "sidecar/device": [BASE, SPEC, GPU, RING, "sidecar/collective"],
    "sidecar/decode": [BASE, SPEC, "sidecar/core"],
    "sidecar/distribute": [BASE, SPEC, "sidecar/core"],
    "sidecar/transform": [BASE, SPEC, "sidecar/core", "sidecar/decode"],
    "sidecar/remote": [BASE, SPEC],
    "sidecar/source": [BASE, SPEC, "sidecar/core", "sidecar/decode", "sidecar/remote", "sidecar/transform"],
    "sidecar/loader": [BASE, SPEC, RING, GPU, "sidecar/collective", "sidecar/core", "sidecar/decode", "sidecar/device",
                       "sidecar/distribute", "sidecar/source", "sidecar/transform"],
    "sidecar": [BASE, SPEC, NET, RING, GPU, "sidecar/collective", "sidecar/device", "sidecar/loader", "sidecar/source"],
    "operator/kube": [BASE, NET],
    "operator/pod": [BASE, SPEC, "operator/kube"],
    "operator/reconcile": [BASE, SPEC, NET, "operator/kube", "operator/pod"],
    "operator/admission": [BASE, SPEC, NET, "operator/kube", "operator/pod"],
    "operator": [BASE, SPEC, NET, "operator/kube", "operator/pod", "operator/reconcile", "operator/admission"],
    # Runs the loader as a process, and reads it through the client's C interface, as users do.
    "cli": [BASE, SPEC, NET, RING, "client/include/headrace", "sidecar/device", "sidecar/source", "operator/admission"],
}

# Third-party headers, by prefix, and the only places that may see them: folders and files. Tests may see all.
THIRD_PARTY = {
    "boost/": [NET, "sidecar/collective"],
    "cpprest/": ["operator/kube"],
    "pplx/": ["operator/kube"],
    "prometheus/": ["sidecar/loader", "operator"],
    "openssl/": [NET, "operator", "operator/kube", "sidecar/remote"],
    "yaml-cpp/": ["cli"],
    "arrow/": ["sidecar/source"],
    "parquet/": ["sidecar/source"],
    "curl/": ["sidecar/remote"],
    "pugixml.hpp": ["sidecar/remote"],
    "isa-l": ["sidecar/source"],
    "bzlib.h": ["sidecar/source"],
    "lz4frame.h": ["sidecar/source"],
    "snappy-c.h": ["sidecar/source"],
    "zstd.h": ["sidecar/source"],
    "jerror.h": ["sidecar/decode"],
    "jpeglib.h": ["sidecar/decode"],
    "png.h": ["sidecar/decode"],
    "simdjson.h": ["sidecar/decode"],
    "zlib.h": ["sidecar/source", "cli"],
    "cuda": ["sidecar/device"],
    "nccl": ["sidecar/device"],
    "nanobind/": ["client/python/src"],
}
# ... and these may not be in a header, except in one that only files of its own folder include.
ONLY_IN_CC = ("boost/", "cpprest/", "pplx/", "prometheus/", "openssl/", "yaml-cpp/", "nlohmann/json.hpp", "nanobind/")


def check(tree):
    problems = []
    sources = [f for f in tree.having(*lint.CXX) if f.startswith(lint.SOURCE_FOLDERS)]
    for path in sources:
        folder = os.path.dirname(path)
        if folder not in ALLOWED:
            problems.append(f"{path}:1: folder {folder}/ is not in the table of tests/lint/layers.py: add its row")
            continue
        for line, header, quoted in tree.includes(path):
            where = f"{path}:{line}:"
            if quoted and not tree.resolve(header):
                problems.append(f'{where} "{header}" is not a file of the tree: write includes from the root')
            elif quoted:
                target = os.path.dirname(tree.resolve(header))
                if target != folder and target not in ALLOWED[folder]:
                    problems.append(f"{where} {folder} may not include {target} ({header})")
            else:
                problems += [f"{where} <{header}> only in {', '.join(places)}" for prefix, places in THIRD_PARTY.items()
                             if header.startswith(prefix) and folder not in places]
                if path.endswith(".h") and header.startswith(ONLY_IN_CC) and not is_private(tree, path, sources):
                    problems.append(f"{where} <{header}> in a header: keep it behind one .cc")
    for path in sources + [f for f in tree.having(*lint.CXX, under="tests/")]:
        problems += own_header_first(tree, path) if not path.endswith(".h") else pragma_once(tree, path)
    return problems


def is_private(tree, header, sources):
    folder = os.path.dirname(header)
    users = [f for f in sources if any(h == header for _, h, _ in tree.includes(f))]
    return bool(users) and all(os.path.dirname(f) == folder for f in users)


def own_header_first(tree, path):
    stem = os.path.splitext(path)[0]
    if stem.startswith("tests/") and stem.endswith("_test"):
        stem = stem[len("tests/"):-len("_test")]
    own, includes = stem + ".h", tree.includes(path)
    if own in tree.files and any(h == own for _, h, _ in includes) and includes[0][1] != own:
        return [f'{path}:{includes[0][0]}: the first include must be its own header, "{own}"']
    return []


def pragma_once(tree, path):
    guarded = path.startswith("client/include/")  # the public header is C and has a guard of its own
    return [] if guarded or "#pragma once\n" in tree.read(path) else [f"{path}:1: no #pragma once"]


def samples():
    good = "#pragma once\n"
    yield {"common/base/a.h": good, "common/net/b.h": good + '#include "common/base/a.h"\n'}, None
    yield {"common/net/b.h": good, "common/base/a.h": good + '#include "common/net/b.h"\n'}, \
        r"common/base/a.h:2: common/base may not include common/net"
    yield {"operator/kube/k.h": good, "sidecar/m.cc": '#include "operator/kube/k.h"\n'}, r"sidecar may not include"
    yield {"common/base/a.cc": '#include "a.h"\n'}, r"write includes from the root"
    yield {"sidecar/source/a.cc": "#include <cpprest/http_client.h>\n"}, r"only in operator/kube"
    heavy = good + "#include <nlohmann/json.hpp>\n"
    yield {"operator/kube/a.h": heavy, "operator/kube/a.cc": '#include "operator/kube/a.h"\n'}, None
    yield {"operator/kube/a.h": heavy, "operator/m.cc": '#include "operator/kube/a.h"\n'}, r"in a header"
    yield {"common/extra/a.cc": ""}, r"not in the table"
    yield {"cli/a.h": "int A();\n"}, r"no #pragma once"
    yield {"cli/a.h": good, "cli/a.cc": '#include <string>\n#include "cli/a.h"\n'}, r"cli/a.cc:1: the first include"


if __name__ == "__main__":
    lint.main(check, samples)
