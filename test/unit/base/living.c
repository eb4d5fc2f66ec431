/* Limiters, schedulers, semaphores and strands in the dump and on the Prometheus page. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/support/rig_suite.h"

TestSuite(base_living, .init = open_rig, .fini = close_rig, .timeout = 60);

static tw_strand *strand;
static tw_semaphore *permits;
static tw_scheduler *scheduler;
static tw_limiter *limiter;

static void create_all(const char *name)
{
	struct tw_scheduler_config turns = {.size = sizeof turns, .name = name};
	struct tw_limiter_config jobs = {
	    .size = sizeof jobs, .max_concurrency = 1, .flags = TW_LIMITER_PAUSED, .name = name};
	expect_eq(tw_strand_create(&strand, rig.service, NULL), 0);
	expect_eq(tw_semaphore_create(&permits, rig.service, NULL, 2), 0);
	expect_eq(tw_scheduler_create(&scheduler, rig.service, &turns), 0);
	expect_eq(tw_limiter_create(&limiter, rig.service, &jobs), 0);
	expect_eq(tw_strand_set_name(strand, name), 0);
	expect_eq(tw_semaphore_set_name(permits, name), 0);
}

static void destroy_all(void)
{
	expect_eq(tw_strand_destroy(strand), 0);
	expect_eq(tw_semaphore_destroy(permits), 0);
	expect_eq(tw_scheduler_destroy(scheduler), 0);
	expect_eq(tw_limiter_close(limiter, TW_CLOSE_DROP, 0), 0);
	rig_advance(&rig, MS);
	expect_eq(tw_limiter_destroy(limiter), 0);
}

static char *text_of(int write(tw_service *service, FILE *out))
{
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	cr_assert(out != NULL);
	expect_eq(write(rig.service, out), 0);
	expect_eq(fclose(out), 0);
	return text;
}

static void expect_text(int write(tw_service *service, FILE *out), const char *part, bool wanted)
{
	char *text = text_of(write);
	cr_assert((strstr(text, part) != NULL) == wanted, "%s: %s\nin: %s", part,
		  wanted ? "missing" : "unexpected", text);
	free(text);
}

#define expect_dump(part) expect_text(tw_service_dump, part, true)
#define expect_page(part) expect_text(tw_service_stats_prometheus, "\ntickwheel_" part "\n", true)

static void nothing(void *arg)
{
	(void)arg;
}

static int job(void *arg, struct tw_job_run *run)
{
	(void)arg;
	(void)run;
	return 0;
}

static int turn(struct tw_turn *turn, void *arg)
{
	(void)turn;
	(void)arg;
	return TW_TURN_DONE;
}

/* ------------------------------------------------------------------------- lists */

Test(base_living, each_kind_is_listed_with_its_name_and_what_waits)
{
	create_all("db");
	expect_eq(tw_strand_submit(strand, nothing, NULL), 0);
	expect_eq(tw_strand_schedule(strand, SECOND, nothing, NULL, NULL), 0);
	expect_eq(tw_semaphore_acquire(permits, 1, 0), 0);
	expect_eq(tw_scheduler_submit(scheduler, TW_PRIORITY_NORMAL, turn, NULL, NULL), 0);
	expect_eq(tw_limiter_submit(limiter, job, NULL, NULL), 0);
	expect_dump("strand \"db\", 0 running, 1 waiting, 1 delayed\n");
	expect_dump("semaphore \"db\", 1 running, 0 waiting\n");
	expect_dump("scheduler \"db\", 0 running, 1 waiting\n");
	expect_dump("limiter \"db\", 0 running, 1 waiting");
	expect_page("layer_waiting{kind=\"limiter\",name=\"db\"} 1");
	expect_page("layer_waiting{kind=\"scheduler\",name=\"db\"} 1");
	expect_page("layer_running{kind=\"semaphore\",name=\"db\"} 1");
	expect_page("layer_delayed{kind=\"strand\",name=\"db\"} 1");
	rig_advance(&rig, 3 * MS);
	expect_dump("limiter \"db\", 0 running, 1 waiting for 3.000 ms\n");
	expect_eq(tw_limiter_set_paused(limiter, false), 0);
	rig_advance(&rig, MS);
	expect_page("layer_started_total{kind=\"limiter\",name=\"db\"} 1");
	expect_page("layer_queue_seconds_total{kind=\"limiter\",name=\"db\"} 0.003000000");
	expect_page("layer_ended_total{kind=\"limiter\",name=\"db\"} 1");
	expect_eq(tw_semaphore_release(permits, 1), 0);
	destroy_all();
	expect_text(tw_service_dump, "\"db\"", false);
	expect_text(tw_service_stats_prometheus, "layer_", false);
}

Test(base_living, what_was_refused_retried_and_timed_out_is_listed)
{
	create_all(NULL);
	struct tw_limiter_task task = {
	    .size = sizeof task, .fn = job, .queue_timeout_ns = MS, .permits = 1};
	expect_eq(tw_limiter_submit_task(limiter, &task, NULL), 0);
	rig_advance(&rig, 3 * MS);
	expect_dump("limiter, 0 running, 0 waiting, 1 timed out\n");
	expect_page("layer_timed_out_total{kind=\"limiter\",name=\"\"} 1");
	destroy_all();
}

static const struct {
	const char *name, *dump, *label;
} hostile[] = {
    {"a\"b\\c\nd", " \"a\\\"b\\\\c\\nd\",", "name=\"a\\\"b\\\\c\\nd\""},
    {"\xff\x01", " \"\\xff\\x01\",", "name=\"\\\\xff\\\\x01\""},
    {"%s%n", " \"%s%n\",", "name=\"%s%n\""},
    {"", "strand, ", "name=\"\""},
    {NULL, "strand, ", "name=\"\""},
    /* the first 63 bytes */
    {"123456789 123456789 123456789 123456789 123456789 123456789 12345678", "56789 123\",",
     "56789 123\"}"},
};

Test(base_living, hostile_names)
{
	create_all(NULL);
	for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
		expect_eq(tw_strand_set_name(strand, hostile[i].name), 0);
		expect_dump(hostile[i].dump);
		expect_text(tw_service_stats_prometheus, hostile[i].label, true);
	}
	destroy_all();
}

/* A name need not outlive its object, though a call that has begun may. */
Test(base_living, a_destroyed_strand_that_is_still_used_has_no_name)
{
	char *name = strdup("gone soon");
	expect_eq(tw_strand_create(&strand, rig.service, NULL), 0);
	expect_eq(tw_strand_set_name(strand, name), 0);
	expect_eq(tw_strand_submit(strand, nothing, NULL), 0);
	expect_eq(tw_strand_destroy(strand), 0);
	free(name);
	expect_dump("strand, 0 running, ");
	rig_advance(&rig, MS);
	expect_text(tw_service_dump, "strand", false);
}

Test(base_living, those_of_one_kind_and_name_are_one_sample)
{
	enum { MANY = 1000 };
	static tw_strand *many[MANY];
	static const char *const names[] = {"even", "odd", NULL};
	for (int i = 0; i < MANY; i++) {
		expect_eq(tw_strand_create(&many[i], rig.service, NULL), 0);
		expect_eq(tw_strand_set_name(many[i], names[i % 3]), 0);
		expect_eq(tw_strand_submit(many[i], nothing, NULL), 0);
	}
	expect_page("layer_objects{kind=\"strand\",name=\"even\"} 334");
	expect_page("layer_waiting{kind=\"strand\",name=\"odd\"} 333");
	expect_page("layer_objects{kind=\"strand\",name=\"\"} 333");
	rig_advance(&rig, MS);
	for (int i = 0; i < MANY; i++)
		expect_eq(tw_strand_destroy(many[i]), 0);
}

/* They are counted in pieces, each of which is one hold of the object's lock. */
Test(base_living, all_that_waits_in_a_long_queue_is_counted)
{
	expect_eq(tw_strand_create(&strand, rig.service, NULL), 0);
	for (int i = 0; i < 10000; i++)
		expect_eq(tw_strand_submit(strand, nothing, NULL), 0);
	expect_dump("strand, 0 running, 10000 waiting\n");
	expect_eq(tw_strand_destroy(strand), 0);
	rig_advance(&rig, MS);
	create_all("long");
	for (int i = 0; i < 10000; i++)
		expect_eq(tw_limiter_submit(limiter, job, NULL, NULL), 0);
	expect_dump("limiter \"long\", 0 running, 10000 waiting");
	destroy_all();
}

/* ------------------------------------------------------------------------- locks */

static unsigned writes;

static void *use_all(void *arg)
{
	tw_strand *other;
	(void)arg;
	expect_eq(tw_strand_submit(strand, nothing, NULL), 0);
	expect_eq(tw_strand_schedule(strand, SECOND, nothing, NULL, NULL), 0);
	expect_eq(tw_scheduler_submit(scheduler, TW_PRIORITY_NORMAL, turn, NULL, NULL), 0);
	expect_eq(tw_limiter_submit(limiter, job, NULL, NULL), 0);
	expect_eq(tw_semaphore_release(permits, 1), -EOVERFLOW); /* takes the lock */
	expect_eq(tw_strand_create(&other, rig.service, NULL), 0);
	expect_eq(tw_strand_destroy(other), 0);
	return NULL;
}

/* Another thread uses all while the line is written, and another dump begins and ends. */
static ssize_t use_beside(void *cookie, const char *text, size_t n)
{
	pthread_t thread;
	(void)cookie;
	if (n > 6 && memcmp(text, "strand", 6) == 0 && writes++ < 3) {
		expect_eq(pthread_create(&thread, NULL, use_all, NULL), 0);
		expect_eq(pthread_join(thread, NULL), 0);
		expect_dump("limiter");
	}
	return (ssize_t)n;
}

/* A lock that the dump held would make this wait forever. */
Test(base_living, a_dump_that_writes_holds_no_lock)
{
	tw_strand *more[8];
	create_all("strand"); /* by itself long enough for use_beside */
	for (int i = 0; i < 8; i++)
		expect_eq(tw_strand_create(&more[i], rig.service, NULL), 0);
	FILE *out = fopencookie(NULL, "w", (cookie_io_functions_t){.write = use_beside});
	cr_assert(out != NULL);
	expect_eq(setvbuf(out, NULL, _IOLBF, 4096), 0);
	expect_eq(tw_service_dump(rig.service, out), 0);
	expect_eq(fclose(out), 0);
	expect_ge(writes, 3);
	for (int i = 0; i < 8; i++)
		expect_eq(tw_strand_destroy(more[i]), 0);
	rig_advance(&rig, MS);
	destroy_all();
}
