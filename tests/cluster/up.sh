#!/usr/bin/env bash
# A real Kubernetes cluster on one machine: etcd, API server, controller manager, scheduler and CoreDNS in one network
# namespace, and NODES nodes (containerd, kubelet, kube-proxy) in namespaces of their own, joined by a bridge. Nothing
# outside the namespaces sees it, and it sees nothing outside. Images are the docker archives in IMAGES.
# Exit code 77: this machine cannot hold a cluster.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/lib.sh"
. "$here/control_plane.sh"
PARTS=${PARTS:-all}  # api: etcd and the API server alone
[ "$PARTS" = all ] || NODES=0

check_machine || exit $EXIT_NO_NAMESPACES
"$here/build.sh"
[ "$PARTS" = api ] || [ -e "$IMAGES/pause.tar" ] || die "no images in $IMAGES (make images)"
"$here/down.sh"
mkdir -p "$RUN"/pki; rm -rf "$RUN/log"; mkdir "$RUN/log"; cd "$RUN"
# State that ends with the cluster: in memory, where there is plenty, it costs no waiting for the disk (about 1 GiB).
[ "$(awk '$1 == "MemAvailable:" {print $2}' /proc/meminfo)" -gt $((6 << 20)) ] && in_memory=1 || in_memory=
needed=${in_memory:+512} needed=${needed:-4096}
left=$(df -Pm . | awk 'END {print $4}')
[ "$left" -ge "$needed" ] || die "$RUN is on a disk with $left MiB left, and a cluster needs $needed: make room there, or set HEADRACE_CLUSTER_RUN to a folder elsewhere"
DAEMON_GROUPS=$(cgroup_dirs daemons)
if [ -n "$in_memory" ]; then
  for part in etcd $(seq -f n%g "$NODES"); do mkdir "$part"; mount -t tmpfs -o mode=755,size=4g headrace "$RUN/$part"; done
fi
trap 'status=$?; [ $status = 0 ] || { tail -n 3 "$RUN"/log/*.log >&2; say "the start failed; cleaning up (logs stay in $RUN/log)"; "$here/down.sh"; }; exit $status' EXIT
trap 'exit 130' INT TERM

make_network() {
  local i j
  ip netns add $NS-ctl; ip -n $NS-ctl link set lo up
  ip -n $NS-ctl link add cl0 type bridge; ip -n $NS-ctl addr add 10.90.0.1/24 dev cl0; ip -n $NS-ctl link set cl0 up
  for i in $(seq "$NODES"); do
    ip netns add $NS-n$i; ip -n $NS-n$i link set lo up
    ip -n $NS-ctl link add v$i type veth peer name eth0 netns $NS-n$i
    ip -n $NS-ctl link set v$i master cl0 up
    ip -n $NS-n$i addr add 10.90.0.1$i/24 dev eth0; ip -n $NS-n$i link set eth0 up
    ip -n $NS-n$i route add default via 10.90.0.1
    nsenter --net=/run/netns/$NS-n$i sysctl -qw net.ipv4.ip_forward=1
    ip -n $NS-ctl route add 10.91.$i.0/24 via 10.90.0.1$i
    for j in $(seq "$NODES"); do [ $i = $j ] || ip -n $NS-n$i route add 10.91.$j.0/24 via 10.90.0.1$j; done
  done
  in_ctl sysctl -qw net.ipv4.ip_forward=1
}

certificate() {  # NAME SUBJECT [SUBJECT-ALTERNATIVE-NAMES]
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "$2" -keyout pki/$1.key -out pki/$1.csr 2>>log/openssl.log
  openssl x509 -req -in pki/$1.csr -CA pki/ca.crt -CAkey pki/ca.key -set_serial 0x$(openssl rand -hex 8) -days 3650 \
    -out pki/$1.crt -extfile <(printf 'subjectAltName=%s' "${3:-DNS:$1}") 2>>log/openssl.log
}
make_pki() {
  local i user
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 -subj /CN=ca -keyout pki/ca.key -out pki/ca.crt 2>>log/openssl.log
  openssl ecparam -name prime256v1 -genkey -noout -out pki/sa.key
  certificate apiserver /CN=kube-apiserver "IP:10.90.0.1,IP:127.0.0.1,IP:10.96.0.1,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local"
  certificate admin /O=system:masters/CN=admin
  certificate kcm /CN=system:kube-controller-manager
  certificate sched /CN=system:kube-scheduler
  for i in $(seq "$NODES"); do certificate n$i "/O=system:nodes/CN=system:node:n$i" "DNS:n$i,IP:10.90.0.1$i"; done
  for user in admin kcm sched $(seq -f n%g "$NODES"); do
    cat > $user.kubeconfig <<K
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://10.90.0.1:6443", certificate-authority: $RUN/pki/ca.crt}}]
users: [{name: u, user: {client-certificate: $RUN/pki/$user.crt, client-key: $RUN/pki/$user.key}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
K
  done
}

start_control_plane() {
  start_etcd
  start_apiserver
  await_apiserver
  [ "$PARTS" = all ] || return 0
  printf '.:53 {\n bind 10.90.0.1\n kubernetes cluster.local in-addr.arpa {\n  kubeconfig %s\n  pods insecure\n  ttl 5\n }\n cache 5\n}\n' "$RUN/admin.kubeconfig" > Corefile
  start coredns nsenter --net=/run/netns/$NS-ctl coredns -conf Corefile
  start kcm nsenter --net=/run/netns/$NS-ctl kube-controller-manager --kubeconfig=kcm.kubeconfig --authentication-kubeconfig=kcm.kubeconfig \
    --authorization-kubeconfig=kcm.kubeconfig --service-account-private-key-file=pki/sa.key --root-ca-file=pki/ca.crt --use-service-account-credentials --leader-elect=false
  start sched nsenter --net=/run/netns/$NS-ctl kube-scheduler --kubeconfig=sched.kubeconfig --authentication-kubeconfig=sched.kubeconfig \
    --authorization-kubeconfig=sched.kubeconfig --leader-elect=false
}

write_node_config() {  # N DIR
  local i=$1 d=$2
  mkdir -p "$d"/{cdi,cni,kubelet}; : > resolv.conf
  cat > "$d/cni/10-bridge.conflist" <<C
{"cniVersion":"1.0.0","name":"pods","plugins":[{"type":"bridge","bridge":"cni0","isGateway":true,"ipMasq":false,"hairpinMode":true,"ipam":{"type":"host-local","dataDir":"$d/ipam","ranges":[[{"subnet":"10.91.$i.0/24"}]],"routes":[{"dst":"0.0.0.0/0"}]}}]}
C
  # restrict_oom_score_adj: root may lack CAP_SYS_RESOURCE. NRI's and opt's default paths would be shared by the nodes.
  cat > "$d/containerd.toml" <<C
version = 3
root = "$d/containerd"
state = "$d/state"
[grpc]
  address = "$d/containerd.sock"
[plugins.'io.containerd.nri.v1.nri']
  disable = true
[plugins.'io.containerd.internal.v1.opt']
  path = "$d/opt"
[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "docker.io/local/pause:1"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  cdi_spec_dirs = ["$d/cdi"]
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["/usr/lib/cni"]
  conf_dir = "$d/cni"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
    SystemdCgroup = false
C
  # A cgroup root for each kubelet: with a shared one, each would end the other's pods as orphans.
  cat > "$d/kubelet.yaml" <<K
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
failSwapOn: false
cgroupDriver: cgroupfs
cgroupRoot: /$NS/n$i
containerRuntimeEndpoint: unix://$d/containerd.sock
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $RUN/pki/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $RUN/pki/n$i.crt
tlsPrivateKeyFile: $RUN/pki/n$i.key
enforceNodeAllocatable: []
cgroupsPerQOS: true
evictionHard: {"nodefs.available": "100Mi"}
imageGCHighThresholdPercent: 100
makeIPTablesUtilChains: false
protectKernelDefaults: false
podLogsDir: $d/podlogs
clusterDNS: [10.90.0.1]
clusterDomain: cluster.local
resolvConf: $RUN/resolv.conf
registerWithTaints: []
K
  cat > "$d/proxy.yaml" <<P
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
hostnameOverride: n$i
clientConnection: {kubeconfig: $RUN/admin.kubeconfig}
clusterCIDR: 10.91.0.0/16
conntrack: {maxPerCore: 0}
P
}

start_node() {
  local i=$1 d=$RUN/n$1 archive
  cgroup_dirs n$i >/dev/null || die "no cgroup can be made for node n$i"
  write_node_config $i "$d"
  # In a mount namespace of its own, which takes every mount with it when the node ends; fixed paths become private.
  start containerd$i nsenter --net=/run/netns/$NS-n$i unshare -m sh -c \
    "mkdir -p /run/containerd /var/lib/cni && mount -t tmpfs none /run/containerd && mount -t tmpfs none /var/lib/cni && exec containerd -c $d/containerd.toml"
  wait_until 60 "containerd of n$i" containerd$i ctr -a "$d/containerd.sock" version  # its socket is there before it answers
  for archive in "$IMAGES"/*.tar; do
    ctr -a "$d/containerd.sock" -n k8s.io images import --local "$archive" >> log/import$i.log 2>&1 || { tail -n 5 log/import$i.log >&2; die "cannot import $archive"; }
  done
  start proxy$i nsenter --net=/run/netns/$NS-n$i kube-proxy --config="$d/proxy.yaml"
  start kubelet$i nsenter --net=/run/netns/$NS-n$i --mount=/proc/$(cat containerd$i.pid)/ns/mnt kubelet --config="$d/kubelet.yaml" \
    --kubeconfig="$RUN/n$i.kubeconfig" --hostname-override=n$i --node-ip=10.90.0.1$i --root-dir="$d/kubelet"
}

began=$(date +%s%N)
say "starting the control plane and $NODES nodes"
make_network
make_pki
parts=()
for i in $(seq "$NODES"); do start_node $i & parts+=($!); done
start_control_plane
for part in "${parts[@]}"; do wait "$part"; done
say "waiting for the nodes"
for i in $(seq "$NODES"); do
  wait_until 120 "node n$i" kubelet$i in_ctl kubectl --kubeconfig admin.kubeconfig wait --for=condition=Ready --timeout=20s node/n$i
done
[ "$PARTS" = api ] || wait_until 60 "the default service account" kcm in_ctl kubectl --kubeconfig admin.kubeconfig get serviceaccount default
ms=$(( ($(date +%s%N) - began) / 1000000 ))
say "up after $((ms / 1000)).$((ms % 1000 / 100)) s: tests/cluster/run.sh kubectl get nodes"
