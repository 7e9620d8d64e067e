#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "hmap.h"

static int load(struct hmap *map, const char *text)
{
    FILE *file = tmpfile();
    fputs(text, file);
    rewind(file);
    int status = hmap_load(map, file);
    fclose(file);
    return status;
}

static void lines_are_read(void)
{
    struct hmap *map = hmap_new(0);
    CHECK(load(map, "# settings\n\n a = 1 \nb=x = y\na = 2\n") == 0);
    CHECK(hmap_count(map) == 2);
    CHECK(strcmp(hmap_get(map, "a"), "2") == 0);
    CHECK(strcmp(hmap_get(map, "b"), "x = y") == 0);
    hmap_free(map, free);
}

static void a_bad_line_has_its_number(void)
{
    struct hmap *map = hmap_new(0);
    CHECK(load(map, "a = 1\n\nnonsense\n") == 3);
    CHECK(load(map, "= 1\n") == 1);
    hmap_free(map, free);
}

static void saving_sorts(void)
{
    struct hmap *map = hmap_new(0);
    char text[64] = "";
    CHECK(load(map, "c = 3\na = 1\nb = 2\n") == 0);
    FILE *file = tmpfile();
    CHECK(hmap_save(map, file) == 0);
    rewind(file);
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    CHECK(length == 18 && strcmp(text, "a = 1\nb = 2\nc = 3\n") == 0);
    hmap_free(map, free);
}

int main(void)
{
    RUN(lines_are_read);
    RUN(a_bad_line_has_its_number);
    RUN(saving_sorts);
    return check_failures != 0;
}
