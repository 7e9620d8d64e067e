# What listens on loopback, and ways to make the gateway do more than answer for this case's model.
listening() { # hexadecimal port and inode, per line
    cat /proc/net/tcp /proc/net/tcp6 2> /dev/null | awk '$4 == "0A" { split($2, at, ":"); print at[2], $10 }' | sort -u
}
own_sockets=$(ls -l /proc/[0-9]*/fd 2> /dev/null | grep -o 'socket:\[[0-9]*\]' | grep -o '[0-9]*' | sort -u)
foreign_ports=$(listening | while read -r port inode; do
    grep -qx "$inode" <<< "$own_sockets" || echo $((0x$port))
done | sort -u)
gateway=

ask() { # request line and headers; prints the status code
    timeout 20 bash -c 'exec 3<>/dev/tcp/127.0.0.1/$0; printf %b "$1" >&3; head -n 1 <&3' "$1" "$2" | cut -d' ' -f2
}
for port in $foreign_ports; do
    [ "$(ask "$port" 'GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')" = 200 ] && gateway=$port
done
echo "gateway at port ${gateway:-unknown}"

more_listeners() { [ "$(wc -w <<< "$foreign_ports")" -gt 1 ]; }
answers() { # request target, method
    [ -n "$gateway" ] || return 1
    code=$(ask "$gateway" "${2:-GET} $1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
    [[ $code == 2* || $code == 3* ]]
}
any_answers() { for target in "$@"; do answers "$target" && return 0; done; return 1; }
any_post_answers() { for target in "$@"; do answers "$target" POST && return 0; done; return 1; }
other_sockets() { timeout 10 find / -xdev -type s -path '*/cbgw-*' | grep -q . || ls -d /tmp/cbgw-*; }

probe listener more_listeners
probe gateway-control any_answers /alive /cases /control /counts /health /metrics /admin / /v1/cases /debug
probe gateway-control-post any_post_answers /open /counts /close /control /v1/open
probe gateway-traversal any_answers /../control/s /v1/../../etc/passwd /v1/%2e%2e/alive //alive /v1/models/../../alive
probe gateway-proxy any_answers http://192.0.2.1/ http://169.254.169.254/latest/meta-data/ http://127.0.0.1/alive
probe gateway-connect answers 192.0.2.1:443 CONNECT
probe gateway-socket other_sockets
