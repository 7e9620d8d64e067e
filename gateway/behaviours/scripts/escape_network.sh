# Ways out of the network. 192.0.2.1 is a documentation address and stands for the internet.
has_route() { awk 'NR > 1 && $1 != "lo"' /proc/net/route | grep -q .; }
has_route6() { awk '$10 != "lo" && $1 !~ /^fe80/' /proc/net/ipv6_route | grep -q .; }
other_interface() {
    for link in /sys/class/net/*; do
        [ "${link##*/}" != lo ] && [ "$(cat "$link/operstate")" = up ] && return 0
    done
    return 1
}
sends_udp() { timeout 3 bash -c 'echo > /dev/udp/192.0.2.1/53'; }
proxy_set() { env | grep -qiE '^(https?|all)_proxy=.'; }
name_server() { timeout 3 getent hosts example.com | grep -q .; }
raw_socket() {
    timeout 3 python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)' && return 0
    timeout 3 perl -MSocket -e 'socket(S, PF_INET, SOCK_RAW, 1) or exit 1'
}
by_python() {
    timeout 3 python3 -c 'import socket; socket.create_connection(("192.0.2.1", 443), 2)'
}
by_perl() { timeout 3 perl -MIO::Socket::INET -e 'IO::Socket::INET->new("192.0.2.1:443") or exit 1'; }
git_out() { timeout 3 git ls-remote http://192.0.2.1/x.git; }

probe route has_route
probe route6 has_route6
probe interface other_interface
probe tcp-internet routed 192.0.2.1 443
probe tcp-host routed 172.17.0.1 22
probe tcp-docker-api routed 172.17.0.1 2375
probe tcp-metadata routed 169.254.169.254 80
probe udp sends_udp
probe dns name_server
probe proxy proxy_set
probe raw-socket raw_socket
probe curl curl -s --max-time 2 http://192.0.2.1/
probe wget wget -q -T 2 -t 1 -O /dev/null http://192.0.2.1/
probe python by_python
probe perl by_perl
probe git-remote git_out
