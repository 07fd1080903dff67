# etcd and the API server (sourced, not run, in RUN; after lib.sh): up.sh starts them, restart.sh starts them anew.

start_etcd() {
  start etcd nsenter --net=/run/netns/$NS-ctl etcd --data-dir "$RUN/etcd" --unsafe-no-fsync --quota-backend-bytes 4294967296 \
    --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 --listen-peer-urls http://127.0.0.1:2380
}

# Aggregator routing: the API server calls webhooks at their pods' addresses, as it runs on no node.
start_apiserver() {
  start apiserver nsenter --net=/run/netns/$NS-ctl kube-apiserver --etcd-servers=http://127.0.0.1:2379 --bind-address=10.90.0.1 --advertise-address=10.90.0.1 \
    --client-ca-file=pki/ca.crt --tls-cert-file=pki/apiserver.crt --tls-private-key-file=pki/apiserver.key \
    --service-account-key-file=pki/sa.key --service-account-signing-key-file=pki/sa.key --service-account-issuer=https://kubernetes.default.svc \
    --service-cluster-ip-range=10.96.0.0/16 --authorization-mode=Node,RBAC --allow-privileged --enable-aggregator-routing \
    --kubelet-preferred-address-types=InternalIP --kubelet-client-certificate=pki/admin.crt --kubelet-client-key=pki/admin.key \
    --kubelet-certificate-authority=pki/ca.crt
}

await_apiserver() {
  wait_until 180 "the API server's port" apiserver is_open 10.90.0.1 6443
  wait_until 180 "the API server" apiserver in_ctl kubectl --kubeconfig admin.kubeconfig get --raw /readyz
}
