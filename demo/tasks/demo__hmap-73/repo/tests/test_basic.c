#include <stdio.h>
#include <string.h>

#include "check.h"
#include "hmap.h"

static int numbers[1000];

static const char *key_of(int i)
{
    static char key[32];
    snprintf(key, sizeof key, "key-%d", i);
    return key;
}

static void empty_map_has_nothing(void)
{
    struct hmap *map = hmap_new(0);
    CHECK(hmap_count(map) == 0);
    CHECK(hmap_get(map, "a") == NULL);
    CHECK(!hmap_has(map, ""));
    CHECK(hmap_del(map, "a") == NULL);
    hmap_free(map, NULL);
}

static void put_and_get(void)
{
    struct hmap *map = hmap_new(0);
    CHECK(hmap_put(map, "a", &numbers[1]) == 0);
    CHECK(hmap_put(map, "", &numbers[2]) == 0);
    CHECK(hmap_get(map, "a") == &numbers[1]);
    CHECK(hmap_get(map, "") == &numbers[2]);
    CHECK(hmap_put(map, "a", &numbers[3]) == 0);
    CHECK(hmap_get(map, "a") == &numbers[3]);
    CHECK(hmap_count(map) == 2);
    hmap_free(map, NULL);
}

static void keys_are_copied(void)
{
    struct hmap *map = hmap_new(0);
    char key[] = "abc";
    hmap_put(map, key, &numbers[0]);
    key[0] = 'x';
    CHECK(hmap_has(map, "abc"));
    CHECK(!hmap_has(map, "xbc"));
    hmap_free(map, NULL);
}

static void grows(void)
{
    struct hmap *map = hmap_new(0);
    for (int i = 0; i < 1000; i++)
        CHECK(hmap_put(map, key_of(i), &numbers[i]) == 0);
    CHECK(hmap_count(map) == 1000);
    for (int i = 0; i < 1000; i++)
        CHECK(hmap_get(map, key_of(i)) == &numbers[i]);
    CHECK(hmap_capacity(map) * 3 >= 1000 * 4);
    hmap_free(map, NULL);
}

static void expected_entries_need_no_growth(void)
{
    struct hmap *map = hmap_new(1000);
    size_t capacity = hmap_capacity(map);
    for (int i = 0; i < 1000; i++)
        hmap_put(map, key_of(i), &numbers[i]);
    CHECK(hmap_capacity(map) == capacity);
    hmap_free(map, NULL);
}

static void iteration_meets_every_entry_once(void)
{
    struct hmap *map = hmap_new(0);
    int seen[100] = { 0 };
    for (int i = 0; i < 100; i++)
        hmap_put(map, key_of(i), &numbers[i]);
    hmap_del(map, key_of(50));
    struct hmap_iter it = hmap_iter(map);
    while (hmap_next(&it))
        seen[(int *)it.value - numbers]++;
    for (int i = 0; i < 100; i++)
        CHECK(seen[i] == (i != 50));
    hmap_free(map, NULL);
}

int main(void)
{
    RUN(empty_map_has_nothing);
    RUN(put_and_get);
    RUN(keys_are_copied);
    RUN(grows);
    RUN(expected_entries_need_no_growth);
    RUN(iteration_meets_every_entry_once);
    return check_failures != 0;
}
