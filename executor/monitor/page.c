#include "executor/monitor/page.h"

#include <inttypes.h>

#include "wheel/base/text.h"

#define NANOSECONDS UINT64_C(1000000000)

void tw__page_head(const struct tw__page *page, const char *name, const char *type,
		   const char *help)
{
	fprintf(page->out, "# HELP tickwheel_%s %s\n# TYPE tickwheel_%s %s\n", name, help, name,
		type);
}

void tw__page_seconds(FILE *out, uint64_t ns)
{
	fprintf(out, "%" PRIu64 ".%09" PRIu64, ns / NANOSECONDS, ns % NANOSECONDS);
}

void tw__page_begin_label(struct tw__page *page, const char *name)
{
	fprintf(page->out, "%c%s=\"", page->in_labels ? ',' : '{', name);
	page->in_labels = true;
}

void tw__page_label(struct tw__page *page, const char *name, const char *value)
{
	tw__page_begin_label(page, name);
	tw__text_put(page->out, value ? value : "", TW__TEXT_LABEL);
	fputc('"', page->out);
}

void tw__page_begin(struct tw__page *page, const struct tw__reading *reading, const char *name)
{
	fprintf(page->out, "tickwheel_%s", name);
	page->in_labels = false;
	if (reading->service)
		tw__page_label(page, "service", reading->service);
}

static void end_labels(const struct tw__page *page)
{
	fputs(page->in_labels ? "} " : " ", page->out);
}

void tw__page_count(const struct tw__page *page, uint64_t value)
{
	end_labels(page);
	fprintf(page->out, "%" PRIu64 "\n", value);
}

void tw__page_time(const struct tw__page *page, uint64_t ns)
{
	end_labels(page);
	tw__page_seconds(page->out, ns);
	fputc('\n', page->out);
}
