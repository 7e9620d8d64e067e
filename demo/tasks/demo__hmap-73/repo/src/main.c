#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hmap.h"

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: hmapdump FILE\n");
        return 2;
    }
    FILE *in = fopen(argv[1], "r");
    if (in == NULL) {
        fprintf(stderr, "hmapdump: %s: %s\n", argv[1], strerror(errno));
        return 1;
    }
    struct hmap *map = hmap_new(0);
    int status = map == NULL ? -1 : hmap_load(map, in);
    fclose(in);
    if (status > 0)
        fprintf(stderr, "hmapdump: %s:%d: expected key = value\n", argv[1], status);
    else if (status < 0 || hmap_save(map, stdout) != 0)
        fprintf(stderr, "hmapdump: out of memory, or nobody reads the output\n");
    hmap_free(map, free);
    return status == 0 ? 0 : 1;
}
