/* What only viewers get, below the figures. */
#include <stdlib.h>

#include "executor/monitor/prometheus.h"
#include "executor/monitor/viewers.h"
#include "wheel/base/text.h"

static void function_label(struct tw__page *page, tw_fn *fn)
{
	char text[TW__FUNCTION_ROOM] = "";
	if (fn)
		tw__text_function(text, fn);
	tw__page_label(page, "fn", text);
}

static void write_ages(struct tw__page *page, const struct tw__reading *reading)
{
	uint64_t now_ns = reading->liveness.now_ns;
	tw__page_head(page, "run_age_seconds", "gauge",
		      "How long each user function has been running.");
	for (size_t i = 0; i < reading->run_count; i++) {
		const struct tw__seen_run *run = &reading->runs[i];
		tw__page_begin(page, reading, "run_age_seconds");
		tw__page_number_label(page, "run", i);
		tw__page_label(page, "kind", tw__run_kind_name(run->kind));
		tw__page_label(page, "name", run->name);
		function_label(page, run->fn);
		tw__page_number_label(page, "thread", run->thread_id);
		tw__page_time(page, now_ns > run->since_ns ? now_ns - run->since_ns : 0);
	}
}

/* The name and the function are those of the member that is due next, or of one that runs. */
static void write_groups(struct tw__page *page, const struct tw__reading *reading)
{
	uint64_t now_ns = reading->liveness.now_ns;
	const struct tw__seen_group *end = reading->groups + reading->group_count;
	tw__page_head(page, "largest_group_members", "gauge",
		      "Timers of the groups that have the most.");
	for (const struct tw__seen_group *group = reading->groups; group < end; group++) {
		tw__page_begin(page, reading, "largest_group_members");
		tw__page_number_label(page, "group", group->index);
		tw__page_label(page, "state", group->closed ? "closed" : "open");
		tw__page_label(page, "name", group->name);
		function_label(page, group->fn);
		tw__page_count(page, group->members);
	}
	tw__page_head(page, "largest_group_running", "gauge",
		      "Callbacks of these groups under way.");
	for (const struct tw__seen_group *group = reading->groups; group < end; group++) {
		tw__page_begin(page, reading, "largest_group_running");
		tw__page_number_label(page, "group", group->index);
		tw__page_count(page, group->running);
	}
	tw__page_head(page, "largest_group_due_seconds", "gauge", "When their next timer is due.");
	for (const struct tw__seen_group *group = reading->groups; group < end; group++) {
		if (group->due_ns == UINT64_MAX)
			continue;
		tw__page_begin(page, reading, "largest_group_due_seconds");
		tw__page_number_label(page, "group", group->index);
		tw__page_time(page, group->due_ns > now_ns ? group->due_ns - now_ns : 0);
	}
}

static void write_cells(struct tw__page *page, const struct tw__reading *reading)
{
	const struct tw_service_histograms *histograms = &reading->histograms;
	const struct {
		const char *of;
		const struct tw_histogram *histogram;
	} all[] = {{"lateness", &histograms->lateness},
		   {"wait", &histograms->wait},
		   {"run", &histograms->run}};
	tw__page_head(page, "cell", "gauge",
		      "Durations in each bucket of struct tw_histogram that is not empty.");
	for (size_t k = 0; k < sizeof all / sizeof *all; k++)
		for (unsigned i = 0; i < TW_HISTOGRAM_BUCKETS; i++) {
			if (!all[k].histogram->buckets[i])
				continue;
			tw__page_begin(page, reading, "cell");
			tw__page_label(page, "of", all[k].of);
			tw__page_number_label(page, "bucket", i);
			tw__page_count(page, all[k].histogram->buckets[i]);
		}
}

int tw__viewers_write(tw_service *service, FILE *out)
{
	struct tw__reading *reading = calloc(1, sizeof *reading);
	if (!reading)
		return -ENOMEM;
	int r = tw__reading_take(service, reading, true);
	if (!r) {
		struct tw__page page = {.out = out, .readings = reading, .count = 1};
		tw__prometheus_figures(&page);
		write_ages(&page, reading);
		write_groups(&page, reading);
		write_cells(&page, reading);
	}
	tw__reading_free(reading);
	free(reading);
	return r ? r : ferror(out) ? -EIO : 0;
}
