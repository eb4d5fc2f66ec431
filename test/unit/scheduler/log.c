/* The event log of schedulers, and its export. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "test/support/work_rig.h"

static struct work_rig rig;

static void open_rig(void)
{
	struct tw_scheduler_config config = work_rig_config(&rig);
	config.log_events = 8;
	work_rig_open(&rig, &config);
}

static void close_rig(void)
{
	work_rig_close(&rig);
}

TestSuite(scheduler_log, .init = open_rig, .fini = close_rig, .timeout = 30);

static void run_all(void)
{
	while (tw_scheduler_run(rig.scheduler, TW_NO_LIMIT) == TW_SCHEDULER_RUN_MORE)
		;
}

static int fail(struct job *job, struct tw_turn *turn)
{
	(void)job, (void)turn;
	return -EBADMSG;
}

struct expected {
	enum tw_scheduler_event_kind kind;
	uint64_t task, after_ms;
};

static void expect_events(const struct expected *expected, int64_t n, uint64_t from_ns)
{
	struct tw_scheduler_event events[16];
	expect_eq(tw_scheduler_events(rig.scheduler, events, 16), n);
	for (int64_t i = 0; i < n; i++) {
		expect_eq(events[i].kind, expected[i].kind);
		expect_eq(events[i].task, expected[i].task);
		expect_eq(events[i].at_ns, from_ns + expected[i].after_ms * MS);
	}
}

Test(scheduler_log, start_suspend_resume_done_error_and_cancel_are_logged)
{
	struct job job = JOB(&rig, 1), bad = JOB(&rig, 2), cancelled = JOB(&rig, 3);
	uint64_t from_ns = rig_now(&rig.rig);
	job.units = 4, job.unit_ns = 2 * MS;
	bad.act = fail;
	job_post(&job, TW_PRIORITY_USER_BLOCKING);
	job_post(&bad, TW_PRIORITY_LOW);
	job_post(&cancelled, TW_PRIORITY_NORMAL);
	expect_eq(tw_scheduler_cancel(rig.scheduler, cancelled.task), TW_CANCELLED);
	run_all();
	const struct expected expected[] = {{TW_EVENT_CANCEL, 3, 0},  {TW_EVENT_START, 1, 0},
					    {TW_EVENT_SUSPEND, 1, 6}, {TW_EVENT_RESUME, 1, 6},
					    {TW_EVENT_DONE, 1, 8},    {TW_EVENT_START, 2, 8},
					    {TW_EVENT_ERROR, 2, 8}};
	expect_events(expected, 7, from_ns);
	struct tw_scheduler_event last;
	expect_eq(tw_scheduler_events(rig.scheduler, &last, 1), 1);
	expect_eq(last.kind, TW_EVENT_ERROR);
	expect_eq(last.result, -EBADMSG);
	expect_eq(last.priority, TW_PRIORITY_LOW);
}

Test(scheduler_log, ring_keeps_the_latest)
{
	struct job jobs[6];
	for (int i = 0; i < 6; i++) {
		jobs[i] = JOB(&rig, i);
		job_post(&jobs[i], TW_PRIORITY_NORMAL);
	}
	run_all();
	struct tw_scheduler_event events[16];
	expect_eq(tw_scheduler_events(rig.scheduler, events, 16), 8);
	expect_eq(events[0].task, 3);
	expect_eq(events[7].task, 6);
	expect_eq(tw_scheduler_events(rig.scheduler, events, 0), 0);
	expect_eq(tw_scheduler_events(rig.scheduler, NULL, 1), -EINVAL);
	expect_eq(tw_scheduler_events(NULL, events, 1), -EINVAL);
}

Test(scheduler_log, dropped_tasks_are_logged_as_cancelled)
{
	struct job job = JOB(&rig, 1);
	job_post(&job, TW_PRIORITY_NORMAL);
	tw_scheduler_close(rig.scheduler, 0);
	expect_events(&(struct expected){TW_EVENT_CANCEL, 1, 0}, 1, rig_now(&rig.rig));
}

/* ------------------------------------------------------------------------ trace */

/* The trace, parsed. */
static json_t *trace(void)
{
	char *text = NULL;
	size_t size = 0;
	json_error_t error;
	FILE *out = open_memstream(&text, &size);
	expect_eq(tw_scheduler_trace(rig.scheduler, out), 0);
	fclose(out);
	json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
	cr_assert(root, "%s at line %d: %s", error.text, error.line, text);
	free(text);
	return root;
}

/* The n-th event of a phase, or NULL. */
static json_t *event_of(json_t *root, const char *phase, size_t n)
{
	size_t i;
	json_t *event;
	json_array_foreach(
	    json_object_get(root, "traceEvents"), i,
	    event) if (!strcmp(json_string_value(json_object_get(event, "ph")), phase) &&
		       n-- == 0) return event;
	return NULL;
}

static double number(json_t *event, const char *key)
{
	cr_assert(json_is_number(json_object_get(event, key)), "%s", key);
	return json_number_value(json_object_get(event, key));
}

Test(scheduler_log, trace_is_sound_json_with_a_bar_for_each_turn)
{
	struct job job = JOB(&rig, 1);
	job.units = 4, job.unit_ns = 2 * MS;
	const struct tw_scheduler_task post = {.size = sizeof post,
					       .fn = job_turn,
					       .arg = &job,
					       .priority = TW_PRIORITY_LOW,
					       .name = "\"quoted\" \\ and\n\tcontrolled"};
	double from_us = (double)rig_now(&rig.rig) / 1000;
	expect_eq(tw_scheduler_submit_task(rig.scheduler, &post, &job.task), 0);
	run_all();
	json_t *root = trace(), *first = event_of(root, "X", 0), *second = event_of(root, "X", 1);
	cr_assert(first && second && !event_of(root, "X", 2));
	cr_assert_str_eq(json_string_value(json_object_get(first, "name")), post.name);
	cr_assert_str_eq(json_string_value(json_object_get(first, "cat")), "low");
	cr_assert_eq(number(first, "ts"), from_us);
	cr_assert_eq(number(first, "dur"), 6000);
	cr_assert_eq(number(second, "ts"), from_us + 6000);
	cr_assert_eq(number(second, "dur"), 2000);
	expect_eq(number(first, "tid"), TW_PRIORITY_LOW);
	json_decref(root);
}

/* JSON allows UTF-8 only. A byte that is none is written as the character of its number. */
Test(scheduler_log, trace_of_a_name_that_is_not_utf8_is_sound_json)
{
	struct job job = JOB(&rig, 1);
	const struct tw_scheduler_task post = {
	    .size = sizeof post, .fn = job_turn, .arg = &job, .name = "caf\xe9"};
	expect_eq(tw_scheduler_submit_task(rig.scheduler, &post, &job.task), 0);
	run_all();
	json_t *root = trace(), *bar = event_of(root, "X", 0);
	cr_assert(bar);
	cr_assert_str_eq(json_string_value(json_object_get(bar, "name")), "caf\u00e9");
	json_decref(root);
}

Test(scheduler_log, trace_marks_what_was_cancelled_and_leaves_out_what_is_cut_off)
{
	struct job jobs[5], cancelled = JOB(&rig, 9);
	for (int i = 0; i < 5; i++) {
		jobs[i] = JOB(&rig, i);
		job_post(&jobs[i], TW_PRIORITY_NORMAL);
	}
	run_all();
	job_post(&cancelled, TW_PRIORITY_IDLE);
	/* the oldest event that is left is an end */
	tw_scheduler_cancel(rig.scheduler, cancelled.task);
	json_t *root = trace();
	cr_assert(event_of(root, "X", 2) && !event_of(root, "X", 3));
	cr_assert(event_of(root, "i", 0) && !event_of(root, "i", 1));
	json_decref(root);
}

Test(scheduler_log, trace_of_no_log_is_empty_and_errors_are_told)
{
	tw_scheduler *silent;
	struct tw_scheduler_config config = work_rig_config(&rig);
	expect_eq(tw_scheduler_create(&silent, rig.rig.service, &config), 0);
	FILE *full = fopen("/dev/full", "w");
	setvbuf(full, NULL, _IONBF, 0);
	expect_eq(tw_scheduler_trace(silent, full), -EIO);
	fclose(full);
	expect_eq(tw_scheduler_trace(NULL, stderr), -EINVAL);
	expect_eq(tw_scheduler_trace(silent, NULL), -EINVAL);
	expect_eq(tw_scheduler_events(silent, NULL, 0), 0);
	expect_eq(tw_scheduler_destroy(silent), 0);
	json_t *root = trace();
	cr_assert(!event_of(root, "X", 0));
	json_decref(root);
}
