#include "user_code.h"

#include <errno.h>
#include <unistd.h>

static tw_service *service;
static void (*call_inside)(void), (*call_idle)(void);

/* Of the kind that has begun. */
static tw_group group;
static tw_limiter *limiter;
static tw_strand *strand;
static tw_scheduler *scheduler;
static tw_action_scheduler *actions;
static tw_action *action;
static tw_semaphore *semaphore;

static void sleep_a_bit(void)
{
	usleep(100);
}

void user_code_open(tw_service *of, void (*inside)(void), void (*idle)(void))
{
	service = of;
	call_inside = inside;
	call_idle = idle ? idle : sleep_a_bit;
}

static void calls(void *arg)
{
	call_inside();
}

static void returns(void *arg)
{
}

static int job_calls(void *arg, struct tw_job_run *run)
{
	call_inside();
	return 0;
}

static int job_returns(void *arg, struct tw_job_run *run)
{
	return 0;
}

static void done_calls(void *arg, const struct tw_job_result *result)
{
	call_inside();
}

static void release_calls(void *arg, enum tw_fate fate)
{
	call_inside();
}

static int turn_calls(struct tw_turn *turn, void *arg)
{
	call_inside();
	return TW_TURN_DONE;
}

static int action_calls(tw_action *self, void *state)
{
	call_inside();
	return 0;
}

static void timer(void)
{
	struct tw_task task = {.size = sizeof task, .fn = calls, .arg = service, .name = "flush"};
	expect_eq(tw_schedule_task(service, &task, NULL), 0);
}

static void release_of_a_timer(void)
{
	struct tw_task task = {.size = sizeof task,
			       .fn = returns,
			       .arg = service,
			       .release = release_calls,
			       .name = "request 7"};
	expect_eq(tw_schedule_task(service, &task, NULL), 0);
}

static void completion_of_a_group(void)
{
	expect_eq(tw_group_create(&group, service), 0);
	expect_eq(tw_group_close(service, group, calls, service), 0);
}

static void submit_job(struct tw_limiter_task task)
{
	struct tw_limiter_config config = {
	    .size = sizeof config, .max_concurrency = 1, .flags = TW_LIMITER_NONBLOCKING};
	task.size = sizeof task;
	task.arg = service;
	expect_eq(tw_limiter_create(&limiter, service, &config), 0);
	expect_eq(tw_limiter_submit_task(limiter, &task, NULL), 0);
}

static void job(void)
{
	submit_job((struct tw_limiter_task){.fn = job_calls, .name = "lookup"});
}

static void done_of_a_job(void)
{
	submit_job((struct tw_limiter_task){.fn = job_returns, .done = done_calls});
}

static void submit_to_strand(struct tw_strand_task task)
{
	task.size = sizeof task;
	task.arg = service;
	expect_eq(tw_strand_create(&strand, service, NULL), 0);
	expect_eq(tw_strand_submit_task(strand, &task, NULL), 0);
}

static void strand_task(void)
{
	submit_to_strand((struct tw_strand_task){.fn = calls, .name = "parse"});
}

static void delayed_strand_task(void)
{
	submit_to_strand((struct tw_strand_task){.fn = calls, .delay_ns = MS});
}

static void series_of_a_strand(void)
{
	struct tw_period once = rate_of(MS, MS, 1);
	submit_to_strand((struct tw_strand_task){.fn = calls, .period = &once});
}

static void release_of_a_strand_task(void)
{
	submit_to_strand((struct tw_strand_task){.fn = returns, .release = release_calls});
}

static void scheduler_task(void)
{
	struct tw_scheduler_task task = {.size = sizeof task,
					 .fn = turn_calls,
					 .arg = service,
					 .priority = TW_PRIORITY_NORMAL,
					 .name = "paint"};
	expect_eq(tw_scheduler_create(&scheduler, service, NULL), 0);
	expect_eq(tw_scheduler_submit_task(scheduler, &task, NULL), 0);
}

static void schedule_action(enum tw_action_kind kind, uint64_t delay_ns)
{
	struct tw_action_scheduler_config config = {
	    .size = sizeof config, .kind = kind, .service = service};
	expect_eq(tw_action_scheduler_create(&actions, &config), 0);
	expect_eq(tw_action_create(&action, actions, action_calls, NULL), 0);
	expect_eq(tw_action_schedule(action, service, delay_ns), 0);
}

/* By a timer's callback of the library's own, which is not counted beside the action. */
static void delayed_action(void)
{
	schedule_action(TW_ACTION_KIND_ASYNC, MS);
}

static void action_of_the_next_turn(void)
{
	schedule_action(TW_ACTION_KIND_ASAP, 0);
}

static void immediate(void)
{
	struct tw_action_scheduler_config config = {
	    .size = sizeof config, .kind = TW_ACTION_KIND_ASAP, .service = service};
	expect_eq(tw_action_scheduler_create(&actions, &config), 0);
	expect_eq(tw_immediate_submit(actions, calls, service, NULL), 0);
}

static void semaphore_function(void)
{
	expect_eq(tw_semaphore_create(&semaphore, service, NULL, 1), 0);
	expect_ge(tw_semaphore_acquire_async(semaphore, 1, calls, service, NULL), 0);
}

#define NAMED(function) ((tw_fn *)(void (*)(void))(function))

const struct user_code user_codes[USER_CODES] = {
    {timer, calls, "flush"},
    {release_of_a_timer, NAMED(release_calls), "request 7"},
    {completion_of_a_group, calls, NULL},
    {job, NAMED(job_calls), "lookup"},
    {done_of_a_job, NAMED(done_calls), NULL},
    {strand_task, calls, "parse"},
    {delayed_strand_task, calls, NULL},
    {series_of_a_strand, calls, NULL},
    {release_of_a_strand_task, NAMED(release_calls), NULL},
    {scheduler_task, NAMED(turn_calls), "paint"},
    {delayed_action, NAMED(action_calls), NULL},
    {action_of_the_next_turn, NAMED(action_calls), NULL},
    {immediate, calls, NULL},
    {semaphore_function, calls, NULL},
};

#define END(object, destroy)                          \
	while (object && (destroy)(object) == -EBUSY) \
		call_idle();                          \
	(object) = NULL

void user_code_end(void)
{
	if (group.id)
		expect_eq(tw_group_destroy(service, group), 0);
	if (action)
		expect_ge(tw_action_close(action, TW_FOREVER), 0);
	if (semaphore)
		expect_eq(tw_semaphore_release(semaphore, 1), 0);
	if (limiter)
		expect_eq(tw_limiter_wait_idle(limiter, TW_FOREVER), 0);
	group = (tw_group){0};
	END(limiter, tw_limiter_destroy);
	END(strand, tw_strand_destroy);
	END(scheduler, tw_scheduler_destroy);
	END(action, tw_action_destroy);
	END(actions, tw_action_scheduler_destroy);
	END(semaphore, tw_semaphore_destroy);
}
