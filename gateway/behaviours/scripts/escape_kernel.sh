# Ways out of the container through the kernel: mounts, namespaces, devices, capabilities.
mounts() { timeout 3 mount -t "$1" none "$scratch" && umount "$scratch"; }
binds() { timeout 3 mount --bind / "$scratch" && umount "$scratch"; }
remounts() { timeout 3 mount -o remount,rw /proc/sys; }
reads_device() {
    for device in /dev/sd? /dev/vd? /dev/xvd? /dev/nvme*n? /dev/dm-* /dev/mem /dev/kmem /dev/port; do
        timeout 3 head -c 1 "$device" 2> /dev/null | grep -q '' && return 0
    done
    return 1
}
makes_device() { timeout 3 mknod "$scratch/device" b 8 0; status=$?; rm -f "$scratch/device"; return $status; }
risky_device() { ls /dev/kvm /dev/fuse /dev/net/tun /dev/kmsg 2> /dev/null | grep -q .; }
release_agent() {
    find /sys/fs/cgroup -name release_agent 2> /dev/null | while IFS= read -r file; do
        opens_for_writing "$file" && exit 3
    done
    [ $? -eq 3 ]
}
raises_limits() {
    for file in /sys/fs/cgroup/pids.max /sys/fs/cgroup/memory.max /sys/fs/cgroup/pids/pids.max \
        /sys/fs/cgroup/memory/memory.limit_in_bytes; do
        opens_for_writing "$file" && return 0
    done
    return 1
}
kernel_files() {
    for file in /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /sys/kernel/uevent_helper \
        /proc/sys/fs/binfmt_misc/register /proc/sys/vm/panic_on_oom; do
        opens_for_writing "$file" && return 0
    done
    return 1
}
reads_core() { [ "$(timeout 3 head -c 1 /proc/kcore | wc -c)" -eq 1 ]; }
module_right() { has_capability 16; }
trace_right() { has_capability 19; }
risky_right() {
    # DAC_READ_SEARCH, NET_ADMIN, NET_RAW, RAWIO, SYS_ADMIN, SYS_BOOT, SYS_TIME, MKNOD, SYSLOG, PERFMON, BPF
    for bit in 2 12 13 17 21 22 25 27 34 38 39; do has_capability $bit && return 0; done
    return 1
}
new_privileges() { grep -qE '^NoNewPrivs:[[:space:]]*0' /proc/self/status; }
writable_mounts() {
    # A folder of the host's that is mounted writable; the three files are the engine's own.
    awk '{ for (i = 7; $i != "-"; i++); kind = $(i + 1) }
        $5 == "/" || $5 ~ "^/(proc|sys|dev)(/|$)" || $5 ~ "^/etc/(hosts|hostname|resolv.conf)$" { next }
        $6 ~ "^rw" && ($4 != "/" || kind ~ "^(ext|xfs|btrfs|zfs|9p|nfs|fuse|virtiofs|vboxsf)") { found = 1 }
        END { exit !found }' /proc/self/mountinfo
}
writes_read_only() {
    awk '$5 != "/" && $5 !~ "^/(proc|sys|dev)" && $6 ~ "^ro" { print $5 }' /proc/self/mountinfo \
        | while IFS= read -r folder; do
            [ -d "$folder" ] && touch "$folder/.probe" && rm -f "$folder/.probe" && exit 3
            mount -o remount,rw "$folder" && exit 3
        done
    [ $? -eq 3 ]
}

probe mount-tmpfs mounts tmpfs
probe mount-proc mounts proc
probe mount-cgroup mounts cgroup2
probe mount-bind binds
probe remount remounts
probe unshare-mount unshare -m true
probe unshare-user unshare -U -r true
probe unshare-net unshare -n true
probe nsenter nsenter -t 1 -m -n true
probe device reads_device
probe mknod makes_device
probe risky-device risky_device
probe release-agent release_agent
probe limits raises_limits
probe sysrq opens_for_writing /proc/sysrq-trigger
probe kernel-files kernel_files
probe kcore reads_core
probe kernel-log dmesg
probe module module_right
probe trace trace_right
probe capabilities risky_right
probe new-privileges new_privileges
probe host-mount writable_mounts
probe read-only-mount writes_read_only
cat "$scratch/escapes" 2> /dev/null || echo "nothing got out"
cd / && rm -rf -- "$scratch"
