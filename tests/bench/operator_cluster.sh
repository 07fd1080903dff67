#!/usr/bin/env bash
# Operators against a real API server, without nodes (README.md beside this file): starts etcd and the API server, measures
# with operator_cluster.py inside their network, and takes everything down, also what a killed run left.
#   tests/bench/operator_cluster.sh [OPTION...]     options are those of operator_cluster.py
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cluster=$root/tests/cluster
export HEADRACE_CLUSTER=headrace-bench HEADRACE_CLUSTER_RUN=${HEADRACE_CLUSTER_RUN:-/var/tmp/headrace-bench}  # tests may run beside it
trap '"$cluster/down.sh"' EXIT
trap 'exit 130' INT TERM
PARTS=api "$cluster/up.sh"
"$cluster/run.sh" /usr/bin/python3 "$root/tests/bench/operator_cluster.py" "$@"
