/* hmap - a hash map from strings to pointers. */
#ifndef HMAP_H
#define HMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct hmap;

/* A map with room for some entries before it first grows; NULL if there is no memory. */
struct hmap *hmap_new(size_t expected);

/* Frees a map, and each value with free_value unless that is NULL. */
void hmap_free(struct hmap *map, void (*free_value)(void *));

/* Sets the value of a key. Returns 0, or -1 if there is no memory; the map is as before then. */
int hmap_put(struct hmap *map, const char *key, void *value);

/* The value of a key, or NULL. */
void *hmap_get(const struct hmap *map, const char *key);

bool hmap_has(const struct hmap *map, const char *key);

/* Removes a key. Returns its value, or NULL if it was not there. */
void *hmap_del(struct hmap *map, const char *key);

size_t hmap_count(const struct hmap *map);

/* How many slots there are; for those who watch memory. */
size_t hmap_capacity(const struct hmap *map);

struct hmap_iter {
    const struct hmap *map;
    size_t next;
    const char *key;
    void *value;
};

/* while (hmap_next(&it)) use it.key and it.value */
struct hmap_iter hmap_iter(const struct hmap *map);
bool hmap_next(struct hmap_iter *it);

/* All keys, sorted; the array is the caller's to free, the keys are not. NULL if there is no memory. */
const char **hmap_sorted_keys(const struct hmap *map);

/* Reads "key = value" lines; values are strings on the heap. Blank lines and # comments are passed over.
   Returns 0, -1 if there is no memory, or the number of the first line that is wrong. */
int hmap_load(struct hmap *map, FILE *in);

/* Writes a map of strings, sorted by key. Returns 0, or -1 on an error. */
int hmap_save(const struct hmap *map, FILE *out);

#endif
