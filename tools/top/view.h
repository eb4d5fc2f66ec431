/* What is shown of a service: two pages, and what lies between them. */
#ifndef TOOLS_TOP_VIEW_H
#define TOOLS_TOP_VIEW_H

#include "tools/top/page.h"
#include "tools/top/screen.h"

enum { VIEW_HISTORY = 512 };

struct view {
	struct page before, now;
	bool has_before;
	char command[PAGE_NAME];
	int pid;
	uint64_t late_ns[VIEW_HISTORY]; /* p99 of lateness in each interval, the latest last */
	unsigned history;
};

/* Takes over a page, read after the others. */
void view_take(struct view *view, struct page *page);

void view_draw(const struct view *view, struct screen *screen);

void view_free(struct view *view);

#endif
