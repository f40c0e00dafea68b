#!/usr/bin/env bash
# Boots systemd in ROOT, where the packages are installed, in namespaces of its own, and uses the installed units: socket
# activation, readiness, restrictions, a checkpoint, clients of two users, a reload, an upgrade, a stop. Prints a message and
# succeeds where the machine does not allow it: this needs root and systemd's hierarchy of control groups (version 1 named
# systemd and devices, or version 2). Run by check.sh.
#   check_booted.sh ROOT
set -euo pipefail
root=$1
group=teletensor-check-$$
log=$root/tmp/boot.log

hierarchies=()
if [[ $(stat -fc %T /sys/fs/cgroup) == cgroup2fs ]]; then
  hierarchies=(/sys/fs/cgroup)
else
  for each in systemd devices unified; do [[ -d /sys/fs/cgroup/$each ]] && hierarchies+=("/sys/fs/cgroup/$each"); done
fi
remove_groups() {
  for each in "${hierarchies[@]}"; do
    [[ -d $each/$group ]] && find "$each/$group" -depth -type d -exec rmdir {} + 2>/dev/null
  done
  true
}
trap remove_groups EXIT
for each in "${hierarchies[@]}"; do
  mkdir "$each/$group" 2>/dev/null || { echo "booted: $each is not writable; not checked"; exit 0; }
done
((${#hierarchies[@]} > 0)) || { echo "booted: no control groups; not checked"; exit 0; }

# PID 1 of the new namespaces; the control groups' namespaces begin at $group.
start() {
  for each in "${hierarchies[@]}"; do echo $BASHPID >"$each/$group/cgroup.procs"; done
  exec unshare --pid --mount --uts --ipc --cgroup --fork bash -euo pipefail -c '
    root=$1
    mount --make-rprivate /
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount -t sysfs sysfs "$root/sys"
    if [[ $(stat -fc %T /sys/fs/cgroup) == cgroup2fs ]]; then
      mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
    else
      mount -t tmpfs tmpfs "$root/sys/fs/cgroup"
      mkdir "$root/sys/fs/cgroup/"{systemd,devices,unified}
      mount -t cgroup -o none,name=systemd cgroup "$root/sys/fs/cgroup/systemd"
      mount -t cgroup -o devices cgroup "$root/sys/fs/cgroup/devices"
      mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup/unified"
      mount -o remount,ro "$root/sys/fs/cgroup"  # otherwise systemd would mount the other hierarchies
    fi
    mount -t tmpfs -o mode=755 tmpfs "$root/run"
    mount -t tmpfs -o mode=755 tmpfs "$root/dev"
    for node in null zero full random urandom tty; do touch "$root/dev/$node"; mount --bind "/dev/$node" "$root/dev/$node"; done
    mkdir "$root/dev/shm"
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
    exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$root" /lib/systemd/systemd --log-target=console
  ' bash "$root"
}
start >"$log" 2>&1 </dev/null &
unshare=$!

fail() {
  echo "check_booted.sh: $1" >&2
  inside journalctl --no-pager --quiet -u teletensord.service -u teletensord.socket >&2 || cat "$log" >&2
  kill_all
  exit 1
}
kill_all() {
  [[ -n ${init:-} ]] && kill -KILL "$init" 2>/dev/null  # the kernel ends the other processes of the namespace
  wait "$unshare" 2>/dev/null || true
}
init=""
for _ in $(seq 100); do
  init=$(cat "/proc/$unshare/task/$unshare/children" 2>/dev/null | tr -d ' ')
  [[ -n $init && $(cat "/proc/$init/comm") == systemd ]] && break
  sleep 0.1
done
inside() {
  nsenter --target="$init" --pid --mount --uts --ipc --cgroup --root -- \
    /usr/bin/env -i -C / PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"
}
state=""
for _ in $(seq 300); do
  state=$(inside systemctl is-system-running 2>/dev/null || true)
  [[ $state == running || $state == degraded ]] && break
  sleep 0.1
done
if [[ $state != running && $state != degraded ]]; then
  echo "booted: systemd does not start here (${state:-no answer}); not checked"
  kill_all
  exit 0
fi

[[ $(inside systemctl is-active teletensord.socket) == active ]] || fail "expected the socket to be active after the boot"
[[ $(inside systemctl is-active teletensord.service || true) == inactive ]] || fail "expected no engine before a connection"
client=(python3 /usr/local/bin/check_client.py /run/teletensor/engine.sock)
inside "${client[@]}" packaged || fail "the client failed"
[[ $(inside systemctl show -P ActiveState teletensord.service) == active ]] || fail "expected the engine to be active"
status=$(inside systemctl show -P StatusText teletensord.service)
[[ $status == "listening on unix:/run/teletensor/engine.sock and 127.0.0.1:7070" ]] || fail "expected the addresses, got $status"
pid=$(inside systemctl show -P MainPID teletensord.service)
[[ $(inside stat -c %U "/proc/$pid") == teletensor ]] || fail "expected the engine to run as teletensor"
inside grep -Eq '^Seccomp:.*2$' "/proc/$pid/status" || fail "expected a filter of system calls"
token=$(<"$root/var/lib/teletensor/token")
inside setpriv --reuid=nobody --regid=nogroup --clear-groups env "TELETENSOR_TOKEN=$token" "${client[@]}" || fail "the client of another user failed"
inside systemctl reload teletensord.service || fail "the reload failed"
[[ $(inside systemctl show -P MainPID teletensord.service) == "$pid" ]] || fail "expected the reload to keep the process"
inside env DPKG_MAINTSCRIPT_PACKAGE=teletensord /var/lib/dpkg/info/teletensord.postinst configure 0.1 || fail "the upgrade failed"
[[ $(inside systemctl show -P MainPID teletensord.service) != "$pid" ]] || fail "expected the upgrade to restart the engine"
inside "${client[@]}" || fail "the client failed after the upgrade"
[[ -s $root/var/log/teletensor/audit.log ]] || fail "expected an audit log"
inside systemctl stop teletensord.service || fail "the stop failed"
[[ $(inside systemctl show -P Result teletensord.service) == success ]] || fail "expected the engine to exit with 0"
inside "${client[@]}" || fail "the client failed after the stop: its connection starts the engine again"
echo "booted: $(inside systemctl --version | head -n 1), units with their restrictions"
kill_all
