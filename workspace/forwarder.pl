# Listens on 127.0.0.1 in the workspace's network namespace and hands bytes to the gateway's Unix socket,
# unread and unchanged. Perl, because every Debian and Ubuntu image has it (perl-base is essential there).
# Arguments: the port, the socket's path.
use strict;
use warnings;
use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;

my ($port, $path) = @ARGV;
$SIG{CHLD} = 'IGNORE';
$SIG{PIPE} = 'IGNORE';
$SIG{TERM} = sub { exit 0 };
my $server = IO::Socket::INET->new(
    LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 64, ReuseAddr => 1, Proto => 'tcp'
) or die "cannot listen on 127.0.0.1:$port: $!\n";
$| = 1;
print "ready\n";

while (1) {
    my $client = $server->accept() or next;
    my $pid = fork();
    if (!defined $pid) { close $client; next }
    if ($pid) { close $client; next }
    close $server;
    my $gateway = IO::Socket::UNIX->new(Peer => $path) or exit 1;
    my %other = (fileno($client) => $gateway, fileno($gateway) => $client);
    my $select = IO::Select->new($client, $gateway);
    while ($select->count) {
        for my $from ($select->can_read) {
            my $to = $other{ fileno $from };
            my $count = sysread $from, my $bytes, 65536;
            if (!$count) {
                # one side has said all it has to say; the other may still be answering
                $select->remove($from);
                shutdown $to, 1;
                exit 0 if !defined $count;
                next;
            }
            my $sent = 0;
            while ($sent < $count) {
                my $wrote = syswrite $to, $bytes, $count - $sent, $sent;
                exit 0 if !defined $wrote;
                $sent += $wrote;
            }
        }
    }
    exit 0;
}
