/* service.h, stats.h. */
#include <errno.h>
#include <stdio.h>

#include "calls.h"

static tw_service *service; /* with a tick thread, and a pool of its own */
static tw_service *by_hand; /* driven by hand, on the real clock, inline */
static FILE *sink, *full;   /* takes everything; has an error */
static struct hold held;

static int visit(void *arg, tw_timer timer, tw_fn *fn, void *fn_arg, uint64_t remaining_ns)
{
	(void)arg, (void)timer, (void)fn, (void)fn_arg, (void)remaining_ns;
	return 0;
}

/* ---------------------------------------------------------------------- good */

static void looks(void)
{
	static struct tw_service_histograms histograms = {.size = sizeof histograms};
	CALL(tw_service_stats(service, PLAIN(tw_service_stats)));
	CALL(tw_service_stats_prometheus(service, sink));
	CALL(tw_service_histograms(service, &histograms));
	CALL(tw_service_liveness(service, PLAIN(tw_service_liveness)));
	CALL(tw_service_pool_stats(service, PLAIN(tw_pool_stats)));
	CALL(tw_service_foreach(service, visit, NULL));
	CALL(tw_service_dump(service, sink));
}

static void drives(void)
{
	uint64_t next_ns;
	CALL(tw_service_advance(by_hand, 1));
	CALL(tw_service_next_expiry(by_hand, &next_ns));
	CALL(tw_service_fd(by_hand));
}

static void ends(void)
{
	CALL(tw_service_close(service, TW_CLOSE_DROP, 0));
	CALL(tw_service_destroy(service));
}

static void looks_and_drives(void)
{
	looks();
	drives();
	CALL(tw_service_validate(service, NULL, 0));
}

static void child_calls(void)
{
	looks_and_drives();
	ends();
	CALL(tw_service_create(&(tw_service *){NULL},
			       STRUCT(tw_service_config, .executor = &refusing)));
}

static void creates(void)
{
	tw_service *other;
	tw_pool *shared;
	MUST(tw_pool_create(&shared, NULL));
	CALL(tw_service_create(&other, NULL));
	CALL(tw_service_create(&other, STRUCT(tw_service_config, .clock = tw_clock_boottime(),
					      .executor = tw_executor_inline())));
	CALL(tw_service_advance(by_hand, 1));
	CALL(tw_service_fd(by_hand));
	CALL(tw_service_stats(service, PLAIN(tw_service_stats)));
	CALL(tw_service_stats_prometheus(service, sink));
	static struct tw_service_histograms histograms = {.size = sizeof histograms};
	CALL(tw_service_histograms(service, &histograms));
	CALL(tw_service_pool_stats(service, PLAIN(tw_pool_stats)));
	MUST(tw_pool_destroy(shared));
}

/* ----------------------------------------------------------------------- bad */

static void bad_looks(void)
{
	situation("with bad arguments");
	CALL(tw_service_destroy(NULL));
	CALL(tw_service_stats_prometheus(service, full));
	CALL(tw_service_pool_stats(by_hand, PLAIN(tw_pool_stats)));
}

/* -------------------------------------------------------------------- inside */

static void inside(void)
{
	situation("inside a callback of its pool");
	looks();
	ends();
}

static void inside_inline(void *arg)
{
	(void)arg;
	situation("inside an inline callback");
	drives();
	CALL(tw_service_validate(by_hand, NULL, 0));
	CALL(tw_service_close(by_hand, TW_CLOSE_DROP, 0));
	CALL(tw_service_destroy(by_hand));
}

static void open_services(void)
{
	const struct tw_task far = {
	    .size = sizeof far, .fn = nothing, .when_ns = 100 * TW_SECOND, .release = testcancel};
	sink = fopen("/dev/null", "w");
	setvbuf(sink, NULL, _IONBF, 0); /* each part is a write */
	MUST(tw_service_create(&service, NULL));
	MUST(tw_service_create(&by_hand, STRUCT(tw_service_config, .drive = TW_DRIVE_MANUAL,
						.executor = tw_executor_inline())));
	MUST(tw_schedule_task(service, &far, NULL));
	MUST(tw_schedule_task(by_hand, &far, NULL));
}

static void end_services(void)
{
	CALL(tw_service_destroy(by_hand));
	CALL(tw_service_destroy(service));
	fclose(sink);
}

static void with_a_layer(void)
{
	tw_strand *strand;
	situation("while a layer uses it");
	MUST(tw_strand_create(&strand, service, NULL));
	ends();
	MUST(tw_strand_destroy(strand));
}

static void while_a_callback_runs(void)
{
	held = (struct hold){0};
	MUST(tw_schedule(service, 0, hold, &held, NULL));
	await_begun(&held);
	situation("while a callback runs");
	CALL(tw_service_validate(service, NULL, 0));
	CALL(tw_service_close(service, TW_CLOSE_DROP, 0));
	let_go(&held);
}

static void on_a_clock_that_stands_still(void)
{
	tw_clock *clock;
	tw_service *still;
	MUST(tw_clock_manual_create(&clock, 0));
	MUST(tw_service_create(&still,
			       STRUCT(tw_service_config, .clock = clock, .drive = TW_DRIVE_MANUAL,
				      .executor = tw_executor_inline())));
	MUST(tw_schedule(still, TW_SECOND, nothing, NULL, NULL));
	situation("on a manual clock");
	CALL(tw_service_fd(still));
	CALL(tw_service_close(still, TW_CLOSE_DRAIN, TW_FOREVER));
	MUST(tw_service_destroy(still));
	MUST(tw_clock_manual_destroy(clock));
}

static void on_a_closed_pool(void)
{
	tw_pool *pool;
	tw_service *other;
	MUST(tw_pool_create(&pool, NULL));
	MUST(tw_pool_close(pool, TW_CLOSE_DROP, NULL, NULL));
	situation("on a closed pool");
	CALL(tw_service_create(&other,
			       STRUCT(tw_service_config, .executor = tw_pool_executor(pool))));
	MUST(tw_pool_destroy(pool));
}

/* --------------------------------------------------------------------- rooms */

static tw_service *while_driving;

static void drive_again(void)
{
	uint64_t next_ns;
	CALL(tw_service_advance(while_driving, 1));
	CALL(tw_service_next_expiry(while_driving, &next_ns));
	CALL(tw_service_fd(while_driving));
}

void services(void)
{
	open_services();
	MUST(tw_schedule(by_hand, 0, inside_inline, NULL, NULL));
	while (tw_service_advance(by_hand, 1) == 0) {
	}
	in_child(child_calls);
	situation("open");
	drives();
	with_a_layer();
	struct inside in = {.calls = inside};
	MUST(tw_schedule(service, 0, run_calls, &in, NULL));
	await_over(&in);
	while_a_callback_runs();
	CALL(tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER));
	CALL(tw_service_close(by_hand, TW_CLOSE_DROP, TW_FOREVER));
	situation("closed");
	CALL(tw_service_close(service, TW_CLOSE_DROP, 0));
	while_driving = by_hand;
	drive_again();
	end_services();
	on_a_clock_that_stands_still();
	on_a_closed_pool();
	open_services();
	without_memory(creates);
	tw_service *fresh;
	MUST(tw_service_create(&fresh, STRUCT(tw_service_config, .drive = TW_DRIVE_MANUAL,
					      .executor = tw_executor_inline())));
	MUST(tw_service_close(fresh, TW_CLOSE_DROP, 0));
	while_driving = fresh;
	situation("closed");
	drive_again();
	MUST(tw_service_destroy(fresh));
	end_services();
}

void statistics(void)
{
	full = fopen("/dev/full", "w");
	setvbuf(full, NULL, _IONBF, 0);
	open_services();
	bad_looks();
	situation("open");
	looks();
	CALL(tw_service_validate(service, NULL, 0));
	MUST(tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER));
	situation("closed");
	looks();
	CALL(tw_service_validate(service, NULL, 0));
	end_services();
	fclose(full);
}
