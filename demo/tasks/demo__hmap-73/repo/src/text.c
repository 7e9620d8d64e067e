#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define LINE_MAX_LENGTH 1024

static char *trim(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        text[--length] = '\0';
    return text;
}

static char *duplicate(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    return copy == NULL ? NULL : memcpy(copy, text, size);
}

int hmap_load(struct hmap *map, FILE *in)
{
    char line[LINE_MAX_LENGTH];
    for (int number = 1; fgets(line, sizeof line, in) != NULL; number++) {
        char *start = trim(line);
        if (*start == '\0' || *start == '#')
            continue;
        char *equals = strchr(start, '=');
        if (equals == NULL || equals == start)
            return number;
        *equals = '\0';
        char *key = trim(start);
        char *value = duplicate(trim(equals + 1));
        if (value == NULL)
            return -1;
        void *old = hmap_get(map, key);
        if (hmap_put(map, key, value) != 0) {
            free(value);
            return -1;
        }
        free(old);
    }
    return 0;
}

int hmap_save(const struct hmap *map, FILE *out)
{
    const char **keys = hmap_sorted_keys(map);
    if (keys == NULL)
        return -1;
    int status = 0;
    for (const char **key = keys; *key != NULL && status == 0; key++) {
        if (fprintf(out, "%s = %s\n", *key, (const char *)hmap_get(map, *key)) < 0)
            status = -1;
    }
    free(keys);
    return status;
}
