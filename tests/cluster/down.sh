#!/usr/bin/env bash
# Ends the cluster and clears everything it left, also what a killed run left: processes, namespaces, mounts, cgroups, state.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
[ "$(id -u)" = 0 ] || die "needs root"

deadline=$((SECONDS + 20))
while pids=$(cluster_pids) && [ -n "$pids" ]; do
  kill -9 $pids 2>/dev/null
  [ $SECONDS -lt $deadline ] || die "these processes do not end: $(echo $pids)"
  sleep 0.1
done
for name in $(ip netns list 2>/dev/null | awk -v p="^$NS-(ctl|n[0-9]+|probe)$" '$1 ~ p {print $1}'); do ip netns del "$name"; done
# Mounts live in the nodes' own mount namespaces and end with them; this is for what an interrupted start left outside.
awk -v d="$RUN/" 'index($2, d) == 1 {print $2}' /proc/mounts | sort -r | xargs -r -n1 umount -l
remove_cgroups
# The logs of the last cluster stay for whoever looks for a failure's cause.
[ ! -d "$RUN" ] || find "$RUN" -mindepth 1 -maxdepth 1 ! -name log -exec rm -rf {} +
