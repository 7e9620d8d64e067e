# Listens on 127.0.0.1 in the workspace's network namespace and passes all bytes on to the gateway's Unix socket,
# unchanged. Written in Perl, because every Debian and Ubuntu image has it (perl-base is an essential package).
# Arguments: the port, the socket's path.
use strict;
use warnings;
use Errno;
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
    converse($client, $gateway);
    exit 0;
}

# Passes bytes both ways at once, because the gateway may answer before it has received everything.
sub converse {
    my @sides = @_;
    $_->blocking(0) for @sides;
    my @unsent = ('', '');    # bytes still to be written to each side
    my @speaks = (1, 1);
    my @told = (0, 0);        # whether a side knows that the other has closed
    while (1) {
        my @read = grep { $speaks[$_] && length $unsent[1 - $_] < 262144 } 0, 1;
        my @write = grep { length $unsent[$_] } 0, 1;
        return if !@read && !@write;
        my ($readable, $writable) = IO::Select->select(
            IO::Select->new(@sides[@read]), IO::Select->new(@sides[@write])
        ) or next;
        for my $from (0, 1) {
            next if !grep { $_ == $sides[$from] } @$readable;
            my $count = sysread $sides[$from], $unsent[1 - $from], 65536, length $unsent[1 - $from];
            if (defined $count) { $speaks[$from] = 0 if !$count }
            else { return if !$!{EAGAIN} && !$!{EINTR} }
        }
        for my $to (0, 1) {
            next if !grep { $_ == $sides[$to] } @$writable;
            my $count = syswrite $sides[$to], $unsent[$to];
            if (defined $count) { substr $unsent[$to], 0, $count, '' }
            else { return if !$!{EAGAIN} && !$!{EINTR} }
        }
        for my $to (0, 1) {
            next if $speaks[1 - $to] || length $unsent[$to] || $told[$to]++;
            shutdown $sides[$to], 1;
        }
    }
}
