#!/usr/bin/env bash
# Runs a command in the cluster's control-plane namespace, with its kubeconfig: run.sh kubectl get pods -A
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
[ -e /run/netns/$NS-ctl ] || die "no cluster is up (make cluster-up)"
export KUBECONFIG=$RUN/admin.kubeconfig HELM_CACHE_HOME=$RUN/helm HELM_CONFIG_HOME=$RUN/helm HELM_DATA_HOME=$RUN/helm
exec nsenter --net=/run/netns/$NS-ctl "$@"
