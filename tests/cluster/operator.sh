#!/usr/bin/env bash
# Starts an operator in the control plane's namespace, with the account and the rights that the chart gives it; down.sh ends
# it with the rest. For a cluster without nodes, into which the chart's objects were applied.
#   operator.sh NAME BINARY WEBHOOK_PORT METRICS_PORT      prints its process id
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/lib.sh"
name=$1 binary=$2 webhook=$3 metrics=$4
cd "$RUN"
DAEMON_GROUPS=$(cgroup_dirs daemons)
mkdir -p "$RUN/account" /var/run/secrets
cp pki/ca.crt account/ca.crt
printf headrace-system > account/namespace
in_ctl "$BIN/kubectl" --kubeconfig admin.kubeconfig create token headrace-operator -n headrace-system --duration=24h > account/token
# The service account's files where a pod has them, in a mount namespace of its own.
start "$name" nsenter --net=/run/netns/$NS-ctl unshare -m sh -c "mount -t tmpfs none /var/run/secrets &&
  mkdir -p /var/run/secrets/kubernetes.io && cp -r $RUN/account /var/run/secrets/kubernetes.io/serviceaccount &&
  KUBERNETES_SERVICE_HOST=10.90.0.1 KUBERNETES_SERVICE_PORT=6443 exec $binary --loader-image=docker.io/headrace/loader:0.1.0 \
  --webhook-port=$webhook --metrics-port=$metrics --identity=$name"
cat "$name.pid"
