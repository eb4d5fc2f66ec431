/* Where pages come from: the sockets of processes that publish a service. */
#ifndef TOOLS_TOP_SOURCE_H
#define TOOLS_TOP_SOURCE_H

#include "tools/top/page.h"

enum { SOURCE_MOST = 64, SOURCE_TEXT = 256 };

/* A published service. */
struct source {
	int pid;
	unsigned number; /* of the service in its process */
};

/*
 * The services that processes publish, in order of process and number; pid 0: of all. The number of
 * them.
 */
size_t source_list(int pid, struct source *out, size_t room);

/* The command name of a process, or "?". */
void source_command(int pid, char *out, size_t room);

/*
 * Reads a page. False: `why` says why not, in one line. Waits for an answer for one second.
 */
bool source_read(const struct source *source, struct page *page, char why[SOURCE_TEXT]);

/* Why a process has no service that could be shown. */
void source_explain(int pid, char why[SOURCE_TEXT]);

#endif
