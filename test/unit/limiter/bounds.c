/* The limiter's bounds: queued jobs, queries, notifications. On a clock moved by hand. */
#include <errno.h>

#include "test/support/limiter_suite.h"

TestSuite(limiter_bounds, .fini = close_left);

static int submit(struct load *load)
{
	struct tw_limiter_task task = load_task(load);
	return tw_limiter_submit_task(home.limiter, &task, &load->job);
}

/* -------------------------------------------------------------- backpressure */

Test(limiter_bounds, more_than_may_wait_are_refused)
{
	struct load loads[4];
	struct tw_limiter_config config = limited_config(1);
	config.max_pending = 2;
	open_with(config);
	for (int i = 0; i < 4; i++)
		loads[i] = LOAD(i, .held = true);
	load_submit(&loads[0]);
	limited_pump(&home);
	load_submit(&loads[1]);
	load_submit(&loads[2]);
	expect_eq(submit(&loads[3]), -EAGAIN);
	expect_eq(loads[3].job.id, 0);
	struct tw_limiter_task task = load_task(&loads[3]);
	task.wait_ns = 1; /* an instant long past */
	task.flags |= TW_LIMITER_TASK_WAIT_UNTIL;
	expect_eq(tw_limiter_submit_task(home.limiter, &task, NULL), -ETIMEDOUT);
	expect_eq(limited_stats(&home).rejected, 2);
	expect_eq(limited_stats(&home).added, 3);
	complete(&loads[0], 0);
	load_submit(&loads[3]);
	expect_eq(loads[3].dones + loads[3].releases, 0);
	for (int i = 1; i < 4; i++)
		complete(&loads[i], 0);
	expect_eq(loads[3].result.id, 4);
}

Test(limiter_bounds, retries_find_their_place_though_the_line_is_full)
{
	struct load load = LOAD(1, .answer = -EIO, .fails = 1), other = LOAD(2, .held = true),
		    late = LOAD(3);
	struct tw_limiter_config config = limited_config(1);
	config.max_pending = 1;
	open_with(config);
	struct tw_limiter_task task = load_task(&load);
	task.retry = (struct tw_retry){.count = 1, .delay_ns = 5 * MS};
	load_submit_task(&load, &task);
	limited_pump(&home);
	expect_eq(limited_stats(&home).retrying, 1);
	expect_eq(submit(&other), -EAGAIN); /* one that waits for a retry counts */
	limited_advance(&home, 5 * MS);
	expect_eq(load.dones, 1);
	load_submit(&late);
	limited_pump(&home);
	expect_eq(late.dones, 1);
}

Test(limiter_bounds, paused_one_refuses_or_queues_as_chosen)
{
	struct load load = LOAD(1);
	struct tw_limiter_config config = limited_config(1);
	config.flags = TW_LIMITER_PAUSED_REFUSES;
	open_with(config);
	tw_limiter_pause(home.limiter);
	expect_eq(submit(&load), -EBUSY);
	expect_eq(limited_stats(&home).rejected, 1);
	tw_limiter_resume(home.limiter);
	load_submit(&load);
	limited_pump(&home);
	expect_eq(load.dones, 1);
}

/* --------------------------------------------------------------- wait and ask */

Test(limiter_bounds, kept_result_can_be_asked_for_until_it_is_forgotten)
{
	struct load load = LOAD(1, .held = true), other = LOAD(2);
	struct tw_job_result result;
	open_started(1);
	struct tw_limiter_task task = load_task(&load);
	task.flags |= TW_LIMITER_TASK_KEEP;
	load_submit_task(&load, &task);
	limited_pump(&home);
	expect_eq(tw_job_state(home.limiter, load.job), TW_JOB_STATE_RUNNING);
	expect_eq(tw_job_wait(home.limiter, load.job, 0, &result), -ETIMEDOUT);
	complete(&load, -EIO);
	for (int i = 0; i < 2; i++) {
		expect_eq(tw_job_wait(home.limiter, load.job, i ? TW_FOREVER : 0, &result), 0);
		expect_eq(result.id, 1);
		expect_eq(result.status, TW_JOB_STATUS_FAILED);
		expect_eq(result.error, -EIO);
		expect_eq(result.value, &load);
	}
	expect_eq(tw_job_state(home.limiter, load.job), TW_JOB_STATE_SETTLED);
	expect_eq(tw_job_cancel(home.limiter, load.job), TW_GONE);
	expect_eq(tw_job_forget(home.limiter, load.job), 0);
	expect_eq(tw_job_forget(home.limiter, load.job), TW_GONE);
	expect_eq(tw_job_wait(home.limiter, load.job, 0, &result), TW_GONE);
	load_submit(&other);
	expect_eq(tw_job_forget(home.limiter, other.job), -EINVAL);
	limited_pump(&home);
	expect_eq(tw_job_wait(home.limiter, other.job, TW_FOREVER, NULL), TW_GONE); /* not kept */
}

Test(limiter_bounds, forgotten_before_it_has_settled_is_gone_then)
{
	struct load load = LOAD(1, .held = true);
	open_started(1);
	struct tw_limiter_task task = load_task(&load);
	task.flags |= TW_LIMITER_TASK_KEEP;
	load_submit_task(&load, &task);
	expect_eq(tw_job_forget(home.limiter, load.job), 0);
	limited_pump(&home);
	complete(&load, 0);
	expect_eq(tw_job_state(home.limiter, load.job), TW_JOB_STATE_GONE);
}

Test(limiter_bounds, kept_results_end_with_the_limiter)
{
	struct load load = LOAD(1);
	open_started(1);
	struct tw_limiter_task task = load_task(&load);
	task.flags |= TW_LIMITER_TASK_KEEP;
	task.timeout_ns = SECOND;
	load_submit_task(&load, &task);
	limited_pump(&home);
	expect_eq(load.dones, 1);
	expect_eq(load.releases, 1);
}

static int wait_for_self[3];

static void wait_in_done(void *arg, const struct tw_job_result *result)
{
	struct load *load = arg;
	wait_for_self[0] = tw_job_wait(home.limiter, load->job, TW_FOREVER, NULL);
	wait_for_self[1] = tw_limiter_wait_idle(home.limiter, TW_FOREVER);
	wait_for_self[2] = tw_limiter_close(home.limiter, TW_CLOSE_DROP, TW_FOREVER);
}

Test(limiter_bounds, waits_that_would_wait_for_their_caller_are_refused)
{
	struct load load = LOAD(1);
	open_started(1);
	struct tw_limiter_task task = load_task(&load);
	task.done = wait_in_done;
	load_submit_task(&load, &task);
	limited_pump(&home);
	expect_eq(wait_for_self[0], -EDEADLK);
	expect_eq(wait_for_self[1], -EDEADLK);
	expect_eq(wait_for_self[2], -EDEADLK);
}

Test(limiter_bounds, stale_and_random_handles_are_harmless)
{
	struct load load = LOAD(1), next = LOAD(2, .held = true);
	open_started(1);
	load_submit(&load);
	limited_pump(&home);
	load_submit(&next); /* in the same node */
	uint64_t seed = 7;
	for (int i = 0; i < 1000; i++) {
		tw_job job = i ? (tw_job){.id = random_next(&seed)} : load.job;
		expect_eq(tw_job_state(home.limiter, job), TW_JOB_STATE_GONE);
		expect_eq(tw_job_cancel(home.limiter, job), TW_GONE);
		expect_eq(tw_job_wait(home.limiter, job, TW_FOREVER, NULL), TW_GONE);
		expect_eq(tw_job_forget(home.limiter, job), TW_GONE);
		expect_eq(tw_job_is_cancelled(home.limiter, job), false);
	}
	limited_pump(&home);
	complete(&next, 0);
}

/* -------------------------------------------------------------------- events */

static char story[256];
static size_t told;

static void tell(const char *what, uint64_t id)
{
	if (told < sizeof(story) - 16)
		told += (size_t)snprintf(story + told, sizeof(story) - told, "%s%llu ", what,
					 (unsigned long long)id);
}

static tw_job handles[64]; /* by id */

static void on_started(void *arg, tw_job job, uint64_t id, uint32_t attempt)
{
	expect_eq(job.id, handles[id].id);
	tell(attempt == 1 ? "s" : "S", id);
}

static void on_retried(void *arg, tw_job job, uint64_t id, uint32_t attempt, uint64_t delay_ns)
{
	expect_eq(job.id, handles[id].id);
	tell(attempt == 1 && delay_ns == 5 * MS ? "r" : "?", id);
}

static void on_settled(void *arg, tw_job job, const struct tw_job_result *result)
{
	expect_eq(job.id, handles[result->id].id);
	tell("e", result->id);
}

static void on_idle(void *arg)
{
	tell("i", *(int *)arg);
}

Test(limiter_bounds, events_tell_the_story)
{
	struct load loads[3] = {LOAD(1), LOAD(2, .answer = -EIO, .fails = 1), LOAD(3)};
	int number = 9;
	struct tw_limiter_config config = limited_config(1);
	limited_hook(&config, (struct limited_hooks){.started = on_started,
						     .retried = on_retried,
						     .settled = on_settled,
						     .idle = on_idle,
						     .arg = &number});
	limited_open(&home, &config);
	for (int i = 0; i < 3; i++) {
		struct tw_limiter_task task = load_task(&loads[i]);
		task.retry = (struct tw_retry){.count = 1, .delay_ns = 5 * MS};
		load_submit_task(&loads[i], &task);
		handles[i + 1] = loads[i].job;
	}
	expect_eq(tw_job_cancel(home.limiter, loads[2].job), TW_CANCELLED);
	tw_limiter_resume(home.limiter);
	limited_advance(&home, 10 * MS);
	cr_assert_str_eq(story, "e3 s1 e1 s2 r2 S2 e2 i9 ");
}

static void submit_in_done(void *arg, const struct tw_job_result *result)
{
	struct load *load = arg;
	load->dones++;
	if (load->dones < 5) {
		struct tw_limiter_task task = load_task(load);
		task.done = submit_in_done;
		tw_limiter_submit_task(home.limiter, &task, NULL);
	}
}

Test(limiter_bounds, callbacks_may_call_anything)
{
	struct load load = LOAD(1);
	open_started(1);
	struct tw_limiter_task task = load_task(&load);
	task.done = submit_in_done;
	load_submit_task(&load, &task);
	limited_pump(&home);
	expect_eq(load.dones, 5);
}

/* ------------------------------------------------------------------- context */

static void *contexts[4];

static int see_context(void *arg, struct tw_job_run *run)
{
	contexts[0] = tw_context_get();
	return 0;
}

static void see_context_in_done(void *arg, const struct tw_job_result *result)
{
	contexts[1] = tw_context_get();
}

static void see_context_in_release(void *arg)
{
	contexts[2] = tw_context_get();
}

static void see_context_in_idle(void *arg, const struct tw_job_result *results, size_t n)
{
	contexts[3] = tw_context_get();
}

Test(limiter_bounds, context_of_the_submit_goes_with_the_job)
{
	int mine = 1, other = 2;
	struct tw_limiter_task task = {.size = sizeof(task),
				       .fn = see_context,
				       .done = see_context_in_done,
				       .release = see_context_in_release};
	open_started(1);
	tw_context_set(&mine);
	expect_eq(tw_limiter_submit_task(home.limiter, &task, NULL), 0);
	expect_eq(tw_limiter_on_idle(home.limiter, see_context_in_idle, NULL), 0);
	tw_context_set(&other);
	limited_pump(&home);
	cr_assert_eq(tw_context_get(), &other);
	tw_context_set(NULL);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(contexts[i], &mine);
}
