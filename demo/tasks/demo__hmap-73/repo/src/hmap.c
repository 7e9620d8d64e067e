#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define MIN_CAPACITY 8

char hmap_tombstone[] = "";

/* A table with n entries has to be larger than 4/3 n. */
static bool is_too_full(size_t entries, size_t capacity)
{
    return entries * 4 > capacity * 3;
}

struct hmap *hmap_new(size_t expected)
{
    struct hmap *map = malloc(sizeof *map);
    if (map == NULL)
        return NULL;
    size_t capacity = MIN_CAPACITY;
    while (is_too_full(expected, capacity))
        capacity *= 2;
    map->slots = calloc(capacity, sizeof *map->slots);
    if (map->slots == NULL) {
        free(map);
        return NULL;
    }
    map->capacity = capacity;
    map->count = 0;
    return map;
}

void hmap_free(struct hmap *map, void (*free_value)(void *))
{
    if (map == NULL)
        return;
    for (size_t i = 0; i < map->capacity; i++) {
        if (!is_live(&map->slots[i]))
            continue;
        if (free_value != NULL)
            free_value(map->slots[i].value);
        free(map->slots[i].key);
    }
    free(map->slots);
    free(map);
}

/* The slot that has a key, or NULL. */
static struct slot *find(const struct hmap *map, const char *key, uint32_t hash)
{
    size_t mask = map->capacity - 1;
    for (size_t step = 0; step < map->capacity; step++) {
        struct slot *slot = &map->slots[(hash + step) & mask];
        if (slot->key == NULL)
            return NULL;
        if (is_live(slot) && slot->hash == hash && strcmp(slot->key, key) == 0)
            return slot;
    }
    return NULL;
}

/* The first slot on a hash's way that was never used, or NULL. */
static struct slot *find_unused(struct slot *slots, size_t capacity, uint32_t hash)
{
    for (size_t step = 0; step < capacity; step++) {
        struct slot *slot = &slots[(hash + step) & (capacity - 1)];
        if (slot->key == NULL)
            return slot;
    }
    return NULL;
}

/* Moves all entries to a table of another capacity. */
static int resize(struct hmap *map, size_t capacity)
{
    struct slot *slots = calloc(capacity, sizeof *slots);
    if (slots == NULL)
        return -1;
    for (size_t i = 0; i < map->capacity; i++) {
        struct slot *old = &map->slots[i];
        if (is_live(old))
            *find_unused(slots, capacity, old->hash) = *old;
    }
    free(map->slots);
    map->slots = slots;
    map->capacity = capacity;
    return 0;
}

int hmap_put(struct hmap *map, const char *key, void *value)
{
    uint32_t hash = hmap_hash(key);
    struct slot *slot = find(map, key, hash);
    if (slot != NULL) {
        slot->value = value;
        return 0;
    }
    if (is_too_full(map->count + 1, map->capacity) && resize(map, map->capacity * 2) != 0)
        return -1;
    size_t size = strlen(key) + 1;
    char *copy = malloc(size);
    if (copy == NULL)
        return -1;
    memcpy(copy, key, size);
    slot = find_unused(map->slots, map->capacity, hash);
    if (slot == NULL) {
        free(copy);
        return -1;
    }
    slot->key = copy;
    slot->hash = hash;
    slot->value = value;
    map->count++;
    return 0;
}

void *hmap_get(const struct hmap *map, const char *key)
{
    struct slot *slot = find(map, key, hmap_hash(key));
    return slot == NULL ? NULL : slot->value;
}

bool hmap_has(const struct hmap *map, const char *key)
{
    return find(map, key, hmap_hash(key)) != NULL;
}

void *hmap_del(struct hmap *map, const char *key)
{
    struct slot *slot = find(map, key, hmap_hash(key));
    if (slot == NULL)
        return NULL;
    void *value = slot->value;
    free(slot->key);
    slot->key = TOMBSTONE;
    slot->value = NULL;
    map->count--;
    return value;
}

size_t hmap_count(const struct hmap *map)
{
    return map->count;
}

size_t hmap_capacity(const struct hmap *map)
{
    return map->capacity;
}
