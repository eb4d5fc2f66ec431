/* The verdict: compares what the clients saw and what the server says with what was promised. */
#ifndef EXAMPLES_DEMO_VERDICT_H
#define EXAMPLES_DEMO_VERDICT_H

#include <stdbool.h>

#include "examples/demo/clients.h"
#include "examples/demo/page.h"
#include "examples/demo/process.h"
#include "examples/demo/sample.h"

struct evidence {
	uint64_t tick_ns;
	struct clients *clients; /* stopped */
	struct sample *oversleep;
	const struct page *page; /* when all was over, the active clients still connected */
	const struct process *load, *server;
	int load_status, server_status;
};

/* Prints it, a line a check. True: all hold. */
bool verdict(const struct evidence *e);

#endif
