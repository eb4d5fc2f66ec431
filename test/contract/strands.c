/* strand.h, semaphore.h. */
#include <errno.h>

#include "calls.h"

static tw_service *service;
static tw_strand *strand;
static tw_strand_task_id task;
static tw_semaphore *permits; /* one permit */
static tw_waiter waiter;
static struct hold held;

#define TASK(...) STRUCT(tw_strand_task, .fn = nothing, __VA_ARGS__)

static void strand_calls(void)
{
	tw_strand *other;
	tw_strand_task_id out;
	CALL(tw_strand_create(&other, service, NULL));
	CALL(tw_strand_submit(strand, nothing, NULL));
	CALL(tw_strand_schedule(strand, MS, nothing, NULL, &out));
	CALL(tw_strand_submit_task(strand, TASK(.delay_ns = MS), &out));
	CALL(tw_strand_cancel(strand, task));
	CALL(tw_strand_cancel_wait(strand, task, 0));
	CALL(tw_strand_stats(strand, PLAIN(tw_strand_stats)));
	CALL(tw_strand_set_name(strand, "strand"));
}

static void strand_in_child(void)
{
	strand_calls();
	CALL(tw_strand_close(strand, 0));
	CALL(tw_strand_destroy(strand));
}

/* What may need memory. */
static void strand_grows(void)
{
	tw_strand *other;
	tw_strand_task_id out;
	CALL(tw_strand_create(&other, service, NULL));
	MUST(tw_strand_create(&other, service, NULL));
	CALL(tw_strand_submit(other, nothing, NULL));
	MUST(tw_strand_destroy(other));
	MUST(tw_strand_create(&other, service, NULL));
	CALL(tw_strand_schedule(other, MS, nothing, NULL, &out));
	MUST(tw_strand_destroy(other));
	MUST(tw_strand_create(&other, service, NULL));
	CALL(tw_strand_submit_task(other, TASK(.delay_ns = MS), &out));
	MUST(tw_strand_destroy(other));
}

static void bad_strands(void)
{
	tw_strand_task_id out;
	situation("with bad arguments");
	CALL(tw_strand_submit_task(strand, BIG(tw_strand_task, .fn = nothing), &out));
	CALL(tw_strand_destroy(NULL));
}

static void inside_a_task(void)
{
	situation("inside its task");
	CALL(tw_strand_close(strand, MS));
	CALL(tw_strand_close(strand, TW_FOREVER));
	strand_calls();
}

static void open_strand(void)
{
	MUST(tw_service_create(&service, NULL));
	MUST(tw_strand_create(&strand, service, NULL));
	MUST(tw_strand_schedule(strand, 100 * TW_SECOND, nothing, NULL, &task));
}

static void in_a_small_service(void)
{
	tw_strand_task_id out;
	MUST(tw_service_create(&service, STRUCT(tw_service_config, .max_timers = 1)));
	MUST(tw_strand_create(&strand, service, NULL));
	for (int i = 0; i < 2000; i++)
		tw_schedule(service, 100 * TW_SECOND, nothing, NULL, NULL);
	situation("full");
	CALL(tw_strand_schedule(strand, 50 * TW_SECOND, nothing, NULL, &out));
	CALL(tw_strand_submit_task(strand, TASK(.delay_ns = 40 * TW_SECOND), &out));
	MUST(tw_strand_destroy(strand));
	MUST(tw_service_destroy(service));
}

void strands(void)
{
	open_strand();
	bad_strands();
	in_child(strand_in_child);
	without_memory(strand_grows);
	struct inside in = {.calls = inside_a_task};
	MUST(tw_strand_submit(strand, run_calls, &in));
	await_over(&in);
	held = (struct hold){0};
	MUST(tw_strand_submit(strand, hold, &held));
	await_begun(&held);
	situation("while a task runs");
	CALL(tw_strand_close(strand, 0));
	let_go(&held);
	MUST(tw_strand_close(strand, TW_FOREVER));
	situation("closed");
	strand_calls();
	CALL(tw_strand_destroy(strand));
	tw_service_close(service, TW_CLOSE_DROP, 0);
	in_a_small_service();
	tw_strand *other;
	MUST(tw_service_create(&service, NULL));
	MUST(tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER));
	situation("of a closed service");
	CALL(tw_strand_create(&other, service, NULL));
	MUST(tw_service_destroy(service));
}

static void permit_calls(void)
{
	tw_semaphore *other;
	tw_waiter out;
	CALL(tw_semaphore_create(&other, service, NULL, 1));
	CALL(tw_semaphore_acquire(permits, 1, 0));
	CALL(tw_semaphore_acquire(permits, 1, 0));
	CALL(tw_semaphore_acquire(permits, 1, MS));
	CALL(tw_semaphore_acquire_async(permits, 1, nothing, NULL, &out));
	CALL(tw_semaphore_cancel(permits, out));
	CALL(tw_semaphore_cancel(permits, waiter));
	CALL(tw_semaphore_release(permits, 1));
	CALL(tw_semaphore_release(permits, 1));
	CALL(tw_semaphore_set_capacity(permits, 1));
	CALL(tw_semaphore_stats(permits, PLAIN(tw_semaphore_stats)));
	CALL(tw_semaphore_set_name(permits, "permits"));
}

static void permits_in_child(void)
{
	permit_calls();
	CALL(tw_semaphore_destroy(permits));
}

static void permits_grow(void)
{
	tw_semaphore *other;
	tw_waiter out;
	CALL(tw_semaphore_create(&other, service, NULL, 0));
	MUST(tw_semaphore_create(&other, service, NULL, 1));
	CALL(tw_semaphore_acquire_async(other, 1, nothing, NULL, &out));
}

void semaphores(void)
{
	tw_semaphore *other;
	MUST(tw_service_create(&service, NULL));
	MUST(tw_semaphore_create(&permits, service, NULL, 1));
	situation("with bad arguments");
	CALL(tw_semaphore_destroy(NULL));
	in_child(permits_in_child);
	situation("open");
	permit_calls();
	MUST(tw_semaphore_create(&other, service, NULL, 0));
	MUST(tw_semaphore_acquire_async(other, 1, nothing, NULL, &waiter));
	situation("while a function waits");
	CALL(tw_semaphore_destroy(other));
	CALL(tw_semaphore_cancel(other, waiter));
	CALL(tw_semaphore_destroy(other));
	without_memory(permits_grow);
	MUST(tw_service_create(&service, NULL));
	MUST(tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER));
	situation("of a closed service");
	CALL(tw_semaphore_create(&other, service, NULL, 1));
	MUST(tw_service_destroy(service));
}
