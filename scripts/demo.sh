#!/usr/bin/env bash
# The main job, from a checkout to a trained model: builds everything, brings up a two-node cluster, installs the chart,
# applies examples/digits/ and shows what the replicas got and how the loss fell. Where no cluster can be had, the same
# example runs under `headrace run`.
#   DEMO_KEEP=1 make demo     leaves the cluster up, to look around in
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
. tests/cluster/lib.sh
kubectl() { tests/cluster/run.sh kubectl "$@"; }
helm() { tests/cluster/run.sh helm "$@"; }
began=$SECONDS
number=0
step() { number=$((number + 1)); printf '\n\033[1m[%d] %s\033[0m  (%d s)\n' "$number" "$1" $((SECONDS - began)); }
shown() { printf '\033[2m$ %s\033[0m\n' "$*"; "$@"; }

run_without_cluster() {
  step "train without a cluster: two workers with two replicas each, as local processes"
  rm -rf build/demo && mkdir -p build/demo
  python3 -m zipfile -e dist/headrace-*.whl build/demo/python
  PYTHONPATH=$root/build/demo/python shown build/release/bin/headrace run -f examples/digits/input.yaml --workers 2 -- \
    /usr/bin/python3 -u examples/digits/train.py | python3 scripts/demo_report.py
}

clean_up() {
  status=$?
  trap - EXIT
  if [ "${DEMO_KEEP:-}" = 1 ] && [ $status = 0 ]; then
    printf '\nThe cluster stays up: tests/cluster/run.sh kubectl get pods -A; make cluster-down ends it.\n'
  elif [ "$cluster" = 1 ]; then
    step "take the cluster down"
    tests/cluster/down.sh
  fi
  [ $status != 0 ] || printf '\nDone in %d s.\n' $((SECONDS - began))
  exit $status
}
explain_failure() {
  printf '\nWhat the cluster says:\n'
  kubectl get pods,distributedinputs -A -o wide || true
  kubectl describe pods -l headrace.dev/input=digits | tail -n 40 || true
  kubectl logs -n headrace-system -l app.kubernetes.io/name=headrace-operator --tail=40 || true
}

# Sorted lists of "running" and "terminated" say that each trainer has a log to follow.
trainers_started() {
  local states
  states=$(kubectl get pods -l headrace.dev/input=digits -o jsonpath='{range .items[*]}{.status.containerStatuses[?(@.name=="trainer")].state}{"\n"}{end}' | grep -c 'running\|terminated' || true)
  [ "$states" -ge 2 ]
}
wait_for_trainers() {
  local deadline=$((SECONDS + 120)) last= now
  until trainers_started; do
    now=$(kubectl get pods -l headrace.dev/input=digits --no-headers 2>/dev/null | awk '{print $1 " " $3}')
    [ "$now" = "$last" ] || printf '%s\n' "$now" | sed 's/^/  /'
    last=$now
    [ $SECONDS -lt $deadline ] || { explain_failure; echo "the trainers did not start within 120 s"; exit 1; }
    sleep 0.3
  done
}

cluster=0
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

step "build the operator, the loader, the command and the Python package"
make -s build wheel
status=0
check_machine || status=$?
if [ $status = $EXIT_NO_NAMESPACES ]; then run_without_cluster; exit; fi

step "build the container images"
images/build.sh
step "start a Kubernetes cluster of two nodes"
cluster=1
tests/cluster/up.sh
shown kubectl get nodes

step "install Headrace"
shown helm install headrace helm/headrace --namespace headrace-system --create-namespace --wait --timeout 90s --hide-notes || { explain_failure; exit 1; }
shown kubectl get pods -n headrace-system

step "apply examples/digits: the input, its data, and a Job of two trainers"
shown kubectl apply -f examples/digits/
wait_for_trainers

step "train: softmax regression on handwritten digits, two workers with two replicas each"
kubectl logs -f -l headrace.dev/input=digits -c trainer --prefix --tail=-1 | python3 scripts/demo_report.py || { explain_failure; exit 1; }
shown kubectl wait --for=condition=Complete job/digits --timeout=60s || { explain_failure; exit 1; }
step "what the cluster knows"
shown kubectl get distributedinputs
shown kubectl get pods -l headrace.dev/input=digits -o wide
