#include <stdlib.h>
#include <string.h>

#include "internal.h"

struct hmap_iter hmap_iter(const struct hmap *map)
{
    return (struct hmap_iter){ .map = map };
}

bool hmap_next(struct hmap_iter *it)
{
    while (it->next < it->map->capacity) {
        const struct slot *slot = &it->map->slots[it->next++];
        if (is_live(slot)) {
            it->key = slot->key;
            it->value = slot->value;
            return true;
        }
    }
    it->key = NULL;
    it->value = NULL;
    return false;
}

static int by_name(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

const char **hmap_sorted_keys(const struct hmap *map)
{
    const char **keys = malloc((map->count + 1) * sizeof *keys);
    if (keys == NULL)
        return NULL;
    size_t n = 0;
    struct hmap_iter it = hmap_iter(map);
    while (hmap_next(&it))
        keys[n++] = it.key;
    keys[n] = NULL;
    qsort(keys, n, sizeof *keys, by_name);
    return keys;
}
