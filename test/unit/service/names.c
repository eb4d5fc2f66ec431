/*
 * Names of timers, jobs and tasks: in the dump and in liveness, while they wait and while they run.
 */
#include <errno.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/support/rig.h"

TestSuite(service_names, .timeout = 30);

/* The dump of a service, to be freed. */
static char *dump_of(tw_service *service)
{
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	cr_assert(out != NULL);
	expect_eq(tw_service_dump(service, out), 0);
	expect_eq(fclose(out), 0);
	return text;
}

static void expect_dump_has(tw_service *service, const char *text, bool wanted)
{
	char *dump = dump_of(service);
	cr_assert((strstr(dump, text) != NULL) == wanted, "%s: %s\nin: %s", text,
		  wanted ? "missing" : "unexpected", dump);
	free(dump);
}

static struct tw_service_liveness look(tw_service *service)
{
	struct tw_service_liveness seen = {.size = sizeof seen};
	expect_eq(tw_service_liveness(service, &seen), 0);
	return seen;
}

static void nothing(void *arg)
{
	(void)arg;
}

static tw_timer schedule_named(tw_service *service, const char *name, tw_group group)
{
	tw_timer timer;
	struct tw_task task = {
	    .size = sizeof task, .fn = nothing, .when_ns = SECOND, .name = name, .group = group};
	expect_eq(tw_schedule_task(service, &task, &timer), 0);
	return timer;
}

/* ------------------------------------------------------------------ pending */

Test(service_names, a_pending_timer_is_listed_with_its_name)
{
	struct rig rig;
	rig_open(&rig, NULL);
	tw_timer timer = schedule_named(rig.service, "idle timeout", (tw_group){0});
	expect_dump_has(rig.service, "pending, due in 1000.000 ms, \"idle timeout\", fn ", true);
	expect_eq(tw_cancel(rig.service, timer), TW_CANCELLED);
	expect_dump_has(rig.service, "idle timeout", false);
	rig_close(&rig);
}

Test(service_names, a_name_does_not_pass_to_the_next_timer_of_the_slot)
{
	struct rig rig;
	rig_open(&rig, NULL);
	tw_group group;
	expect_eq(tw_group_create(&group, rig.service), 0);
	/* through the magazine, and by kept records of the group */
	for (int i = 0; i < 1000; i++) {
		tw_timer timer = schedule_named(rig.service, "old", group);
		expect_eq(tw_cancel(rig.service, timer), TW_CANCELLED);
		timer = schedule_named(rig.service, NULL, group);
		expect_dump_has(rig.service, "\"old\"", false);
		expect_eq(tw_cancel(rig.service, timer), TW_CANCELLED);
	}
	expect_eq(tw_group_destroy(rig.service, group), 0);
	rig_close(&rig);
}

Test(service_names, named_timers_keep_each_its_name)
{
	struct rig rig;
	rig_open(&rig, NULL);
	static const char *const names[] = {"first", "second", NULL, "fourth"};
	struct tw_task tasks[4];
	for (int i = 0; i < 4; i++)
		tasks[i] = (struct tw_task){.size = sizeof tasks[i],
					    .fn = nothing,
					    .when_ns = (uint64_t)(i + 1) * SECOND,
					    .name = names[i]};
	for (int i = 0; i < 4; i++)
		expect_eq(tw_schedule_task(rig.service, &tasks[i], NULL), 0);
	expect_dump_has(rig.service, "due in 1000.000 ms, \"first\"", true);
	expect_dump_has(rig.service, "due in 2000.000 ms, \"second\"", true);
	expect_dump_has(rig.service, "due in 3000.000 ms, fn", true);
	expect_dump_has(rig.service, "due in 4000.000 ms, \"fourth\"", true);
	rig_close(&rig);
}

Test(service_names, a_caller_built_before_names_has_none)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct tw_task task = {.size = offsetof(struct tw_task, name),
			       .fn = nothing,
			       .when_ns = SECOND,
			       .name = "unseen"};
	expect_eq(tw_schedule_task(rig.service, &task, NULL), 0);
	expect_dump_has(rig.service, "unseen", false);
	expect_dump_has(rig.service, "pending", true);
	rig_close(&rig);
}

Test(service_names, what_is_not_printable_utf8_is_escaped)
{
	struct rig rig;
	rig_open(&rig, NULL);
	static const struct {
		const char *name, *shown;
	} cases[] = {
	    {"say \"hi\"", "\"say \\\"hi\\\"\""},
	    {"back\\slash", "\"back\\\\slash\""},
	    {"two\nlines", "\"two\\nlines\""},
	    {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8d\xb5",
	     "\"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8d\xb5\""},
	    {"\x1b[31m", "\"\\x1b[31m\""},
	    {"\x7f\xff", "\"\\x7f\\xff\""},
	    {"cut\xe2\x82", "\"cut\\xe2\\x82\""},
	    {"\xc0\xafoverlong\xe0\x80\xaf", "\"\\xc0\\xafoverlong\\xe0\\x80\\xaf\""},
	    /* a surrogate; too large */
	    {"\xed\xa0\x80\xf4\x90\x80\x80", "\"\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80\""},
	    /* a control character */
	    {"\xc2\x9b", "\"\\xc2\\x9b\""},
	    {"", "\"\""},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		tw_timer timer = schedule_named(rig.service, cases[i].name, (tw_group){0});
		expect_dump_has(rig.service, cases[i].shown, true);
		expect_eq(tw_cancel(rig.service, timer), TW_CANCELLED);
	}
	rig_close(&rig);
}

Test(service_names, a_function_is_named_by_its_symbol_or_by_its_place_in_the_file)
{
	struct rig rig;
	rig_open(&rig, NULL);
	tw_timer timer;
	expect_eq(tw_schedule(rig.service, SECOND, (tw_fn *)(void (*)(void))perror, NULL, &timer),
		  0);
	expect_dump_has(rig.service, ", fn perror, ", true);
	expect_eq(tw_cancel(rig.service, timer), TW_CANCELLED);
	expect_eq(tw_schedule(rig.service, SECOND, nothing, NULL, &timer), 0);
	expect_dump_has(rig.service, "+0x", true); /* a static function */
	expect_eq(tw_cancel(rig.service, timer), TW_CANCELLED);
	rig_close(&rig);
}

Test(service_names, the_oldest_overdue_timer_has_its_name)
{
	struct rig rig;
	rig_open(&rig, NULL);
	schedule_named(rig.service, "late one", (tw_group){0});
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS + 3 * SECOND), 0);
	struct tw_service_liveness seen = look(rig.service);
	expect_eq(seen.overdue, 1);
	cr_assert(seen.overdue_name && strcmp(seen.overdue_name, "late one") == 0);
	rig_advance(&rig, 0);
	cr_assert(look(rig.service).overdue_name == NULL);
	rig_close(&rig);
}

Test(service_names, a_dump_begins_with_the_services_name)
{
	struct rig rig;
	struct tw_service_config config = rig_config();
	config.name = "say \"hi\"\xff";
	rig_open(&rig, &config);
	schedule_named(rig.service, "idle timeout", (tw_group){0});
	char *dump = dump_of(rig.service);
	static const char line[] = "service \"say \\\"hi\\\"\\xff\"\n";
	cr_assert(strncmp(dump, line, strlen(line)) == 0, "%s", dump);
	free(dump);
	rig_close(&rig);
}

/* ------------------------------------------------------------------ running */

/* A service on a pool of two workers; each user function blocks until the test lets it go on. */
struct stage {
	struct rig rig;
	tw_pool *pool;
	sem_t begun, go_on;
};

static void await(sem_t *sem)
{
	while (sem_wait(sem) != 0)
		;
}

static void stage_open(struct stage *stage)
{
	struct tw_pool_config config = {.size = sizeof config, .workers = 2};
	sem_init(&stage->begun, 0, 0);
	sem_init(&stage->go_on, 0, 0);
	expect_eq(tw_pool_create(&stage->pool, &config), 0);
	struct tw_service_config cfg = rig_config();
	cfg.executor = tw_pool_executor(stage->pool);
	rig_open(&stage->rig, &cfg);
}

static void stage_close(struct stage *stage)
{
	rig_close(&stage->rig);
	expect_eq(tw_pool_destroy(stage->pool), 0);
}

static void block(void *arg)
{
	struct stage *stage = arg;
	sem_post(&stage->begun);
	await(&stage->go_on);
}

static void release_blocks(void *arg, enum tw_fate fate)
{
	(void)fate;
	block(arg);
}

static int job_blocks(void *arg, struct tw_job_run *run)
{
	(void)run;
	block(arg);
	return 0;
}

static int turn_blocks(struct tw_turn *turn, void *arg)
{
	(void)turn;
	block(arg);
	return TW_TURN_DONE;
}

/* What blocks is listed as running, with its name, and liveness names it; then it goes on. */
static void expect_named(struct stage *stage, const char *name)
{
	char line[64];
	await(&stage->begun);
	rig_advance(&stage->rig, 5 * MS);
	struct tw_service_liveness seen = look(stage->rig.service);
	expect_eq(seen.running, 1);
	cr_assert(seen.longest_name && strcmp(seen.longest_name, name) == 0, "longest_name");
	char *dump = dump_of(stage->rig.service);
	cr_assert(strncmp(dump, "running for ", 12) == 0, "%s", dump);
	snprintf(line, sizeof line, ", \"%s\", fn ", name);
	cr_assert(strstr(dump, line) != NULL, "%s", dump);
	snprintf(line, sizeof line, ", thread %u, ", seen.longest_thread);
	cr_assert(strstr(dump, line) != NULL, "%s", dump);
	free(dump);
	sem_post(&stage->go_on);
	while (look(stage->rig.service).running)
		usleep(100);
	cr_assert(look(stage->rig.service).longest_name == NULL);
	expect_dump_has(stage->rig.service, name, false);
}

Test(service_names, a_running_timer_is_listed_with_age_and_name)
{
	struct stage stage;
	stage_open(&stage);
	struct tw_task task = {
	    .size = sizeof task, .fn = block, .arg = &stage, .when_ns = MS, .name = "flush"};
	expect_eq(tw_schedule_task(stage.rig.service, &task, NULL), 0);
	rig_advance(&stage.rig, 2 * MS);
	expect_named(&stage, "flush");
	stage_close(&stage);
}

Test(service_names, a_release_has_the_name_of_its_timer)
{
	struct stage stage;
	stage_open(&stage);
	struct tw_task task = {.size = sizeof task,
			       .fn = nothing,
			       .arg = &stage,
			       .when_ns = MS,
			       .release = release_blocks,
			       .name = "request 7"};
	expect_eq(tw_schedule_task(stage.rig.service, &task, NULL), 0);
	rig_advance(&stage.rig, 2 * MS);
	expect_named(&stage, "request 7");
	stage_close(&stage);
}

Test(service_names, a_running_job_is_listed_with_its_name)
{
	struct stage stage;
	stage_open(&stage);
	struct tw_limiter_config config = {
	    .size = sizeof config, .max_concurrency = 1, .max_pending = 1};
	tw_limiter *limiter;
	expect_eq(tw_limiter_create(&limiter, stage.rig.service, &config), 0);
	struct tw_limiter_task task = {
	    .size = sizeof task, .fn = job_blocks, .arg = &stage, .name = "lookup"};
	expect_eq(tw_limiter_submit_task(limiter, &task, NULL), 0);
	rig_advance(&stage.rig, 2 * MS);
	expect_named(&stage, "lookup");
	expect_eq(tw_limiter_destroy(limiter), 0);
	stage_close(&stage);
}

Test(service_names, a_running_strand_task_is_listed_with_its_name)
{
	struct stage stage;
	stage_open(&stage);
	tw_strand *strand;
	expect_eq(tw_strand_create(&strand, stage.rig.service, NULL), 0);
	struct tw_strand_task task = {
	    .size = sizeof task, .fn = block, .arg = &stage, .name = "parse"};
	expect_eq(tw_strand_submit_task(strand, &task, NULL), 0);
	rig_advance(&stage.rig, 2 * MS);
	expect_named(&stage, "parse");
	expect_eq(tw_strand_destroy(strand), 0);
	stage_close(&stage);
}

Test(service_names, a_running_scheduler_task_is_listed_with_its_name)
{
	struct stage stage;
	stage_open(&stage);
	tw_scheduler *scheduler;
	expect_eq(tw_scheduler_create(&scheduler, stage.rig.service, NULL), 0);
	struct tw_scheduler_task task = {.size = sizeof task,
					 .fn = turn_blocks,
					 .arg = &stage,
					 .priority = TW_PRIORITY_NORMAL,
					 .name = "paint"};
	expect_eq(tw_scheduler_submit_task(scheduler, &task, NULL), 0);
	rig_advance(&stage.rig, 2 * MS);
	expect_named(&stage, "paint");
	expect_eq(tw_scheduler_destroy(scheduler), 0);
	stage_close(&stage);
}
