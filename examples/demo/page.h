/* The server's /stats page, as the demo reads it. */
#ifndef EXAMPLES_DEMO_PAGE_H
#define EXAMPLES_DEMO_PAGE_H

#include <stdbool.h>
#include <stdint.h>

struct page {
	char text[8192];
	uint64_t read_ns;
};

/*
 * A blocking connection to the server; -1: none. `source`: an address to use, in host order; 0:
 * any.
 */
int page_connect(uint16_t port, uint32_t source);

/* False: no answer, or not the whole page. */
bool page_read(int fd, struct page *p);

/*
 * The value of a line. Ends the program if there is no such line: a misspelled name must not look
 * like a zero.
 */
uint64_t page_value(const struct page *p, const char *name);

#endif
