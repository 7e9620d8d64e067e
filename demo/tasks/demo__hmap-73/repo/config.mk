# Defaults; a packager's own config.mk replaces them.
CC = gcc
CFLAGS = -std=c11 -O1 -g -Wall -Wextra -Wpedantic
PREFIX = /usr/local
