/* The pages that are made from figures. */
#ifndef EXAMPLES_SERVER_REPORT_H
#define EXAMPLES_SERVER_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct server;

typedef bool page_fn(const struct server *server, FILE *out);

/* GET /stats: one "name value" a line, for programs and for people. */
page_fn report;

/* GET /metrics: the service's figures in the text format of Prometheus; the library writes it. */
page_fn metrics;

/* *text is the caller's to free, in any case. False: out of memory. */
bool page(const struct server *server, page_fn *write, char **text, size_t *length);

#endif
