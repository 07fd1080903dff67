#!/usr/bin/env bash
# Kills etcd or the API server of the running cluster and starts it anew, as a machine that fails and comes back:
#   restart.sh etcd|apiserver
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/lib.sh"
. "$here/control_plane.sh"
name=${1:-}
case $name in etcd | apiserver) ;; *) die "restart.sh etcd|apiserver" ;; esac
alive "$name" || die "no $name runs (make cluster-up)"
cd "$RUN"
DAEMON_GROUPS=$(cgroup_dirs daemons)
pid=$(cat "$name.pid")
kill -9 "$pid"
while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
"start_$name"
await_apiserver
