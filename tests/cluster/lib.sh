# Shared by the scripts of this folder (sourced, not run): where things are, and how processes are started and ended.
#
# HEADRACE_CACHE        built binaries and images, kept between runs   (default: ~/.cache/headrace)
# HEADRACE_CLUSTER      prefix of its network namespaces and cgroups: a second cluster at a time needs another (default: headrace)
# HEADRACE_CLUSTER_RUN  its state, logs and kubeconfigs                (default: /var/tmp/$HEADRACE_CLUSTER-cluster)
CACHE=${HEADRACE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/headrace}
BIN=$CACHE/cluster/bin
IMAGES=$CACHE/images/archives
NS=${HEADRACE_CLUSTER:-headrace}
RUN=${HEADRACE_CLUSTER_RUN:-/var/tmp/$NS-cluster}
NODES=${NODES:-2}
EXIT_NO_NAMESPACES=77    # this machine cannot hold a cluster; `make demo` falls back to `headrace run`
export PATH=$BIN:$PATH:/usr/sbin:/sbin

say() { printf 'cluster: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# What a cluster needs of the machine; prints what is missing, returns EXIT_NO_NAMESPACES.
check_machine() {
  local why=
  if [ "$(id -u)" != 0 ]; then why="not root"
  elif ! command -v ip nft runc >/dev/null; then why="ip, nft or runc is not installed (run make setup)"
  elif ! ip netns add $NS-probe 2>/dev/null; then why="'ip netns add' is refused"
  else
    ip -n $NS-probe link add probe type bridge 2>/dev/null || why="a bridge cannot be made in a network namespace"
    unshare -m mount -t tmpfs none /mnt 2>/dev/null || why="'mount' is refused in a mount namespace"
    ip netns del $NS-probe
  fi
  [ -n "$why" ] || cgroup_dirs probe >/dev/null || why="no cgroup can be made under /sys/fs/cgroup"
  [ -z "$why" ] && { remove_cgroups probe; return 0; }
  say "no Kubernetes cluster can run on this machine: $why"
  return $EXIT_NO_NAMESPACES
}

# The cgroup hierarchies: one with cgroup v2, one for each controller with v1.
hierarchies() {
  if [ -e /sys/fs/cgroup/cgroup.controllers ]; then echo /sys/fs/cgroup; return; fi
  local dir
  for dir in /sys/fs/cgroup/*/; do
    [ ! -L "${dir%/}" ] && [ -e "${dir}cgroup.procs" ] && echo "${dir%/}"
  done
  return 0
}

# Makes the cgroup $NS/NAME in every hierarchy, usable as a kubelet's root, and prints the folders.
cgroup_dirs() {
  local root group
  for root in $(hierarchies); do
    for group in $NS $NS/$1; do
      mkdir -p "$root/$group" 2>/dev/null || return 1
      if [ -e "$root/cpuset.cpus" ] && [ -e "$root/$group/cpuset.mems" ] && [ ! -e "$root/cgroup.controllers" ]; then
        cat "$root/cpuset.cpus" > "$root/$group/cpuset.cpus"; cat "$root/cpuset.mems" > "$root/$group/cpuset.mems"
      elif [ -e "$root/cgroup.controllers" ] && [ "$1" != daemons ]; then
        sed 's/[^ ]\+/+&/g' "$root/cgroup.controllers" > "$root/$(dirname "$group")/cgroup.subtree_control" 2>/dev/null || true
        sed 's/[^ ]\+/+&/g' "$root/cgroup.controllers" > "$root/$group/cgroup.subtree_control" 2>/dev/null || true
      fi
      # A group counts as one task by default: on a busy machine the whole cluster would get as much as one compiler.
      [ ! -e "$root/$group/cpu.shares" ] || echo 10240 > "$root/$group/cpu.shares"
      [ ! -e "$root/$group/cpu.weight" ] || echo 1000 > "$root/$group/cpu.weight"
    done
    echo "$root/$group"
  done
}

remove_cgroups() {  # $NS/NAME, or all of $NS
  local root
  for root in $(hierarchies); do
    [ -d "$root/$NS${1:+/$1}" ] && find "$root/$NS${1:+/$1}" -depth -type d -exec rmdir {} + 2>/dev/null
  done
  return 0
}

# Every process of the cluster, daemons, shims and pods alike, is in some cgroup below $NS/.
cluster_pids() {
  local root
  for root in $(hierarchies); do
    [ -d "$root/$NS" ] && find "$root/$NS" -name cgroup.procs -exec cat {} + 2>/dev/null
  done | sort -un
}

# start NAME COMMAND...: in the background, in the daemons' cgroup, output to RUN/log/NAME.log, pid to RUN/NAME.pid.
start() {
  local name=$1 group; shift
  (
    for group in $DAEMON_GROUPS; do echo "$BASHPID" > "$group/cgroup.procs" 2>/dev/null || true; done
    exec setsid "$@"
  ) >"$RUN/log/$name.log" 2>&1 </dev/null &
  echo $! > "$RUN/$name.pid"
  disown  # its end is not this shell's to report
}

alive() { kill -0 "$(cat "$RUN/$1.pid" 2>/dev/null)" 2>/dev/null; }

# wait_until SECONDS WHAT DAEMON COMMAND...: polls until COMMAND succeeds; fails at once with the log when DAEMON has died.
# The pause lets a machine with few cores do something else than polling: kubectl takes a tenth of a second of them.
wait_until() {
  local deadline=$((SECONDS + $1)) what=$2 daemon=$3; shift 3
  until "$@" >/dev/null 2>&1; do
    if ! alive "$daemon"; then tail -n 20 "$RUN/log/$daemon.log" >&2; die "$daemon ended before $what; its log: $RUN/log/$daemon.log"; fi
    if [ $SECONDS -ge $deadline ]; then tail -n 20 "$RUN/log/$daemon.log" >&2; die "waited in vain for $what; log: $RUN/log/$daemon.log"; fi
    sleep 0.4
  done
}

is_open() { in_ctl bash -c "exec 3<>/dev/tcp/$1/$2"; }
in_ctl() { nsenter --net=/run/netns/$NS-ctl "$@"; }
