/*
 * A page of a published service: what tw_service_publish answers, read into samples and
 * distributions.
 *
 * The text is Prometheus' format with a head of comments. Labels are unescaped except for newlines.
 */
#ifndef TOOLS_TOP_PAGE_H
#define TOOLS_TOP_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tickwheel.h"

enum { PAGE_FORMAT = 1, PAGE_NAME = 256 };

struct page_sample {
	const char *name;   /* without "tickwheel_" */
	const char *labels; /* as they stand between the braces; "" without */
	double value;
};

struct page {
	char *text; /* samples point into it */
	struct page_sample *samples;
	size_t count;
	char service[PAGE_NAME];
	uint64_t read_ns; /* of the monotonic clock */
	struct tw_histogram lateness, wait, run;
};

enum page_fault { PAGE_OK, PAGE_FOREIGN, PAGE_OTHER_FORMAT, PAGE_CUT, PAGE_NO_MEMORY };

/* Takes over `text`, which ends with a zero byte. *format: what the page says. */
enum page_fault page_parse(struct page *page, char *text, int *format);

void page_free(struct page *page);

/*
 * The value of the first sample of that name that has `label` (NULL: any) among its labels; 0
 * without one.
 */
double page_value(const struct page *page, const char *name, const char *label);

/* The same. *known: there is such a sample. */
double page_find(const struct page *page, const char *name, const char *label, bool *known);

/* The value of a label, unescaped, in `out`; "" if the sample has none of that name. */
void page_label(const struct page_sample *sample, const char *label, char *out, size_t room);

#endif
