#!/usr/bin/env bash
# Gives every node of the running cluster two simulated GPUs, of DeviceClass gpu.example.com (dra_driver/main.go says what
# they are). Does nothing where they are there; down.sh ends them with the cluster.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/lib.sh"
[ -e /run/netns/$NS-ctl ] || die "no cluster is up (make cluster-up)"
binary=$("$here/dra_driver/build.sh")
DAEMON_GROUPS=$(cgroup_dirs daemons)
USER_ID=65534  # nobody: it has no rights but those given here
kubectl() { in_ctl "$BIN/kubectl" --kubeconfig "$RUN/admin.kubeconfig" "$@"; }

kubectl apply -f "$here/dra_driver/rights.yaml" >/dev/null

start_driver() {  # NODE
  local node=$1 d=$RUN/$1/gpus
  # The binary lies in the home folder of whoever built it, which is not the driver's to enter.
  mkdir -p "$d/plugin"; cp "$binary" "$d/simulated-gpus"
  cat > "$d/kubeconfig" <<K
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://10.90.0.1:6443", certificate-authority-data: $(base64 -w0 "$RUN/pki/ca.crt")}}]
users: [{name: u, user: {token: $(kubectl create token simulated-gpus -n kube-system --duration=24h)}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
K
  chmod 400 "$d/kubeconfig"
  chown -R "$USER_ID" "$d" "$RUN/$node/cdi"; chown "$USER_ID" "$RUN/$node/kubelet/plugins_registry"
  start gpus-$node nsenter --net=/run/netns/$NS-$node setpriv --reuid=$USER_ID --regid=$USER_ID --clear-groups \
    --no-new-privs -- "$d/simulated-gpus" -kubeconfig "$d/kubeconfig" -node "$node" \
    -registrar-dir "$RUN/$node/kubelet/plugins_registry" -plugin-dir "$d/plugin" -cdi-dir "$RUN/$node/cdi"
}

is_published() { kubectl get resourceslices --field-selector "spec.nodeName=$1,spec.driver=gpu.example.com" -o name | grep -q .; }

for i in $(seq "$NODES"); do alive "gpus-n$i" || start_driver "n$i"; done
for i in $(seq "$NODES"); do wait_until 60 "the simulated GPUs of n$i" "gpus-n$i" is_published "n$i"; done
