/*
 * Samples in Prometheus' text format, version 0.0.4. Times are seconds. They are written from
 * integers, since printf would write the decimal point of the process's locale.
 *
 * The samples of one figure follow each other. So a page of several services has the samples of
 * each figure for all of them before the next figure.
 */
#ifndef TW_EXECUTOR_MONITOR_PAGE_H
#define TW_EXECUTOR_MONITOR_PAGE_H

#include "executor/monitor/reading.h"

struct tw__page {
	FILE *out;
	const struct tw__reading *readings;
	size_t count;
	bool in_labels;
};

void tw__page_head(const struct tw__page *page, const char *name, const char *type,
		   const char *help);

void tw__page_seconds(FILE *out, uint64_t ns);

/* A sample: its name, then labels, then its value. The first label is the service's. */
void tw__page_begin(struct tw__page *page, const struct tw__reading *reading, const char *name);

/* A label's name and first quote; the caller writes the value and the other quote. */
void tw__page_begin_label(struct tw__page *page, const char *name);

/* value: escaped; NULL: empty */
void tw__page_label(struct tw__page *page, const char *name, const char *value);

/* The value, which ends the sample. */
void tw__page_count(const struct tw__page *page, uint64_t value);
void tw__page_time(const struct tw__page *page, uint64_t ns);

#endif
