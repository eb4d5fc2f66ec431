/*
 * Compaction in the background that yields to requests. Requests come every 2 ms and take 50 us;
 * compaction is 300 ms of work. All run on one thread.
 *
 * The same second is played three times: without compaction, with compaction that holds the thread,
 * and with compaction that asks tw_scheduler_should_yield after each page.
 */
#include <stdio.h>
#include <time.h>

#include "tickwheel/layers.h"

enum { REQUESTS = 300, PAGES = 1000 };

#define BETWEEN_NS (2 * TW_MILLISECOND)
#define REQUEST_NS (50 * TW_MICROSECOND)
#define PAGE_NS (300 * TW_MICROSECOND)

struct request {
	uint64_t sent_ns, answered_ns;
};

struct table {
	unsigned dirty_pages;
	bool yields;
	unsigned turns;
};

static uint64_t now_ns(void)
{
	return tw_clock_now(tw_clock_monotonic());
}

static void work(uint64_t span_ns)
{
	for (uint64_t end_ns = now_ns() + span_ns; now_ns() < end_ns;) {
	}
}

static int answer(struct tw_turn *turn, void *arg)
{
	struct request *request = arg;
	(void)turn;
	work(REQUEST_NS);
	request->answered_ns = now_ns();
	return TW_TURN_DONE;
}

static int compact(struct tw_turn *turn, void *arg)
{
	struct table *table = arg;
	table->turns++;
	while (table->dirty_pages) {
		if (table->yields && tw_scheduler_should_yield(turn->scheduler))
			return TW_TURN_AGAIN;
		work(PAGE_NS);
		table->dirty_pages--;
	}
	return TW_TURN_DONE;
}

static void sleep_until(uint64_t at_ns)
{
	struct timespec at = {.tv_sec = (time_t)(at_ns / TW_SECOND),
			      .tv_nsec = (long)(at_ns % TW_SECOND)};
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static void print_line(const char *what, const struct request *requests, const struct table *table)
{
	uint64_t sum_ns = 0, most_ns = 0;
	for (int i = 0; i < REQUESTS; i++) {
		uint64_t took_ns = requests[i].answered_ns - requests[i].sent_ns;
		sum_ns += took_ns;
		most_ns = took_ns > most_ns ? took_ns : most_ns;
	}
	printf("%-28s %10.2f %10.2f %12u %10u\n", what, (double)sum_ns / REQUESTS / 1e6,
	       (double)most_ns / 1e6, table->turns ? PAGES - table->dirty_pages : 0, table->turns);
}

static void await_quiet(tw_scheduler *scheduler)
{
	struct tw_scheduler_stats stats = {.size = sizeof stats};
	do {
		sleep_until(now_ns() + TW_MILLISECOND);
		tw_scheduler_stats(scheduler, &stats);
	} while (stats.ready + stats.delayed);
}

static int show(const char *what, struct table table)
{
	static struct request requests[REQUESTS];
	tw_service *service;
	tw_scheduler *scheduler;
	struct tw_service_config one_thread = {
	    .size = sizeof one_thread, .workers = 1, .max_workers = 1};
	if (tw_service_create(&service, &one_thread) ||
	    tw_scheduler_create(&scheduler, service, NULL))
		return 1;
	struct tw_scheduler_task job = {.size = sizeof job,
					.fn = compact,
					.arg = &table,
					.priority = TW_PRIORITY_IDLE,
					.name = "compaction"};
	struct tw_scheduler_task request = {.size = sizeof request,
					    .fn = answer,
					    .priority = TW_PRIORITY_USER_BLOCKING,
					    .name = "request"};
	uint64_t next_ns = now_ns();
	int r = table.dirty_pages ? tw_scheduler_submit_task(scheduler, &job, NULL) : 0;
	for (int i = 0; i < REQUESTS; i++) {
		sleep_until(next_ns += BETWEEN_NS);
		requests[i].sent_ns = next_ns;
		request.arg = &requests[i];
		r |= tw_scheduler_submit_task(scheduler, &request, NULL);
	}
	await_quiet(scheduler);
	print_line(what, requests, &table);
	r |= tw_scheduler_destroy(scheduler);
	r |= tw_service_destroy(service);
	return r != 0;
}

int main(void)
{
	printf("requests' latency, ms              mean       most   pages done      turns\n");
	int r = show("no compaction", (struct table){0});
	r |= show("compaction holds the thread", (struct table){.dirty_pages = PAGES});
	r |= show("compaction gives way", (struct table){.dirty_pages = PAGES, .yields = true});
	return r;
}
