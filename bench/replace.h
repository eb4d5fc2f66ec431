/*
 * A file that is written as a whole: who reads it sees the old or the new, also when this program
 * is killed or the disk is full. Folders on the way to it are made.
 */
#ifndef BENCH_REPLACE_H
#define BENCH_REPLACE_H

#include <stdbool.h>
#include <stdio.h>

struct replacement {
	FILE *file; /* to be written to */
	const char *path;
	char beside[4096]; /* where it grows; empty: at its own place */
};

/*
 * All: 0, or -1 with errno. After replace_begin has succeeded, replace_end must follow; it tells of
 * failed writes too.
 */
int replace_begin(struct replacement *replacement, const char *path);
int replace_end(struct replacement *replacement);

/*
 * Whether a file could be written there, found out before work is put into it. What is there stays
 * as it is.
 */
int replace_try(const char *path);

/* A device or a pipe is written to where it is. */
bool is_special_file(const char *path);

#endif
