/* A few lines to write tests with: CHECK inside a test, RUN for each test in main, and return failures. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>

static int check_failures;
static int check_bad;

#define CHECK(condition)                                                          \
    do {                                                                          \
        if (!(condition)) {                                                       \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            check_bad = 1;                                                        \
            return;                                                               \
        }                                                                         \
    } while (0)

#define RUN(test)                                            \
    do {                                                     \
        check_bad = 0;                                       \
        test();                                              \
        printf("%s: %s\n", check_bad ? "FAIL" : "PASS", #test); \
        fflush(stdout);                                      \
        check_failures += check_bad;                         \
    } while (0)

#endif
