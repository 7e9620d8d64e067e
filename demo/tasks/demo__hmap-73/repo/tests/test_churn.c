#include <stdio.h>

#include "check.h"
#include "hmap.h"

static int numbers[64];

static const char *key_of(int i)
{
    static char key[32];
    snprintf(key, sizeof key, "session/%d", i);
    return key;
}

static void deleting_leaves_the_others(void)
{
    struct hmap *map = hmap_new(0);
    for (int i = 0; i < 64; i++)
        hmap_put(map, key_of(i), &numbers[i]);
    for (int i = 0; i < 64; i += 2)
        CHECK(hmap_del(map, key_of(i)) == &numbers[i]);
    CHECK(hmap_count(map) == 32);
    for (int i = 0; i < 64; i++)
        CHECK(hmap_get(map, key_of(i)) == (i % 2 ? &numbers[i] : NULL));
    hmap_free(map, NULL);
}

static void a_deleted_key_can_come_back(void)
{
    struct hmap *map = hmap_new(0);
    hmap_put(map, "a", &numbers[0]);
    hmap_del(map, "a");
    CHECK(hmap_put(map, "a", &numbers[1]) == 0);
    CHECK(hmap_get(map, "a") == &numbers[1]);
    CHECK(hmap_count(map) == 1);
    hmap_free(map, NULL);
}

int main(void)
{
    RUN(deleting_leaves_the_others);
    RUN(a_deleted_key_can_come_back);
    return check_failures != 0;
}
