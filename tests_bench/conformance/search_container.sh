# shellcheck shell=bash disable=SC2154
# Prints what a container shows about its host, its network and other cases, under headings. Runs inside the
# container with the variables mounts, needles, state, processes and since (see watched_adapter.py).
section() { echo "=== $1"; }
section uid; id -u
section devices; sed 1,2d /proc/net/dev | cut -d: -f1 | tr -d ' '
section routes; sed 1d /proc/net/route
count() {
  awk '/^Ip:/ { if (n++) print $column; else for (i = 1; i <= NF; i++) if ($i == "OutNoRoutes") column = i }' \
    /proc/net/snmp
}
try() { perl -MIO::Socket::INET -e 'IO::Socket::INET->new(PeerAddr => "192.0.2.1:80", Timeout => 1)'; }
section tries; count
try; try; try
section tries-after-three-of-ours; count
section peers; awk '$1 ~ /:$/ { print $3 }' /proc/net/tcp /proc/net/udp | grep -v -e '^0100007F:' -e '^00000000:'
section writable
for mount in $mounts; do
  if [ -d "$mount" ]; then (: > "$mount/.conformance") 2>/dev/null && echo "$mount"
  else (: >> "$mount") 2>/dev/null && echo "$mount"; fi
done
section processes; test -s "$processes" && echo seen
section found
export LC_ALL=C
{
  grep -rlaF -D skip -f "$needles" /testbed /tmp /root /home /etc /run /var/log "$state" $mounts
  find / -xdev -type f -newerct "@$since" ! -path "$needles" -exec grep -laF -f "$needles" {} +
  grep -laF -f "$needles" /proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/mounts
} 2>/dev/null | sort -u
section end
