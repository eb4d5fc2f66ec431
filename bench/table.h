/* The table of a workload: texts in rows and columns, for the terminal and for the page. */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include <stdio.h>

#include "bench/results.h"

enum { TABLE_COLUMNS = MAX_COLUMNS + 6, TABLE_TEXT_SIZE = 40 };

struct table_row {
	bool begins_group; /* another n or number of threads than the row above */
	bool ours;
	char texts[TABLE_COLUMNS][TABLE_TEXT_SIZE];
};

/* Row 0 has the headings, with units. The first TABLE_LEFT columns are words, the rest numbers. */
enum { TABLE_LEFT = 3 };
struct table {
	size_t row_count;
	unsigned column_count;
	struct table_row *rows;
};

/*
 * Only the headings: nothing is finished. Every candidate's first figure is compared with ours:
 * ratio. With all_spans each figure's min .. max stands behind it; else the first one's has a
 * column of its own if it fits.
 */
void table_make(struct table *table, const struct results *results, const struct workload *workload,
		bool all_spans);
void table_free(struct table *table);

void table_print(FILE *out, const struct table *table);

/* " near", " far", or nothing. */
const char *distance_text(enum distance distance);

/* "1M", "10k", "1500", or the workload's own word. */
const char *size_text(const struct workload *workload, uint32_t n, char *buffer, size_t size);

#endif
