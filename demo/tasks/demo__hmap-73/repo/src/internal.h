/* What the parts of hmap share and nobody else sees. */
#ifndef HMAP_INTERNAL_H
#define HMAP_INTERNAL_H

#include <stdint.h>

#include "hmap.h"

struct slot {
    char *key; /* NULL if never used, TOMBSTONE if deleted */
    uint32_t hash;
    void *value;
};

struct hmap {
    struct slot *slots;
    size_t capacity; /* a power of two */
    size_t count;    /* live entries */
};

extern char hmap_tombstone[];
#define TOMBSTONE hmap_tombstone

static inline bool is_live(const struct slot *slot)
{
    return slot->key != NULL && slot->key != TOMBSTONE;
}

uint32_t hmap_hash(const char *key);

#endif
