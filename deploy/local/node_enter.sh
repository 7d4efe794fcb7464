#!/bin/sh
# Enters the real node's own mount namespace and becomes its containerd. Started by `unshare --mount`.
#
#   node_enter.sh <cgroup.procs of the daemons> <node's folder> <folder of its tools> <its programs> command…
#
# Inside, they are /run/agentjobs/state, …/tools and …/bin: short paths, since a socket's may have
# 107 bytes. What containerd and the kubelet would leave in /run, /var/lib and /var/log of
# this machine goes to memory, and is gone with them.
set -eu
echo $$ > "$1"

mount -t tmpfs -o mode=755 agentjobs /run
mkdir -p /run/agentjobs/state /run/agentjobs/tools /run/agentjobs/bin /run/agentjobs/kernel
mount --bind "$2" /run/agentjobs/state
mount --bind "$3" /run/agentjobs/tools
for program in $4; do
    : > "/run/agentjobs/bin/$(basename "$program")"
    mount --bind "$(readlink -f "$program")" "/run/agentjobs/bin/$(basename "$program")"
done
shift 4
# Only now: the folders above may lie below these.
mount -t tmpfs -o mode=755 agentjobs /var/lib
mount -t tmpfs -o mode=755 agentjobs /var/log

# The kubelet sets these for the whole machine. It finds them set, in files of its own instead.
pretend() {
    [ -e "/proc/sys/$1" ] || return 0
    file="/run/agentjobs/kernel/$(basename "$1")"
    echo "$2" > "$file"
    mount --bind "$file" "/proc/sys/$1"
}
pretend vm/overcommit_memory 1
pretend vm/panic_on_oom 0
pretend kernel/panic 10
pretend kernel/panic_on_oops 1
pretend kernel/keys/root_maxkeys 1000000
pretend kernel/keys/root_maxbytes 25000000

exec "$@"
