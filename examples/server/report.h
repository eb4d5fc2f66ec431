/* The answer to GET /stats: one "name value" a line, for programs and for people. */
#ifndef EXAMPLES_SERVER_REPORT_H
#define EXAMPLES_SERVER_REPORT_H

#include <stdbool.h>
#include <stddef.h>

struct server;

/* *text is the caller's to free. False: out of memory. */
bool report(const struct server *server, char **text, size_t *length);

#endif
