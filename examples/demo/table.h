/*
 * The live table: the server's own figures once a second. On a terminal it is drawn in place, with
 * the clients below it.
 */
#ifndef EXAMPLES_DEMO_TABLE_H
#define EXAMPLES_DEMO_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "examples/demo/clients.h"
#include "examples/demo/page.h"

struct table {
	bool in_place;
	unsigned rows;      /* printed so far */
	unsigned lines;     /* to go back over */
	struct page before; /* rates count from it */
};

void table_show(struct table *t, const struct page *now, const struct clients *clients);

#endif
