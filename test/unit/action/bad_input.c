/* Bad input: each documented answer, and nothing has changed. */
#include <string.h>

#include "executor/action/internal.h"
#include "test/support/actions.h"
#include "test/support/child.h"
#include "test/support/faults.h"
#include "test/support/misuse_text.h"

TestSuite(action_bad_input, .timeout = 30);

static int answer(struct tw_action_scheduler_config config)
{
	tw_action_scheduler *out = (tw_action_scheduler *)&config;
	if (!config.size)
		config.size = sizeof(config);
	int r = tw_action_scheduler_create(&out, &config);
	if (r)
		cr_assert_eq(out, (tw_action_scheduler *)&config, "*out was written");
	else
		expect_eq(tw_action_scheduler_destroy(out), 0);
	return r;
}

#define ANSWER(...) answer((struct tw_action_scheduler_config){__VA_ARGS__})

static void nothing(void *arg)
{
	(void)arg;
}

static void told(void *arg, bool wanted)
{
	(void)arg;
	(void)wanted;
}

Test(action_bad_input, of_schedulers)
{
	struct rig rig;
	rig_open(&rig, NULL);
	tw_service *service = rig.service;
	tw_action_scheduler *out;
	tw_executor unsound = {0};
	expect_eq(
	    tw_action_scheduler_create(NULL,
				       &(struct tw_action_scheduler_config){
					   .size = sizeof(struct tw_action_scheduler_config)}),
	    -EINVAL);
	expect_eq(tw_action_scheduler_create(&out, NULL), -EINVAL);
	expect_eq(ANSWER(.size = 8, .service = service), -EINVAL);
	expect_eq(ANSWER(.kind = (enum tw_action_kind)4, .service = service), -EINVAL);
	expect_eq(ANSWER(.kind = (enum tw_action_kind) - 1, .service = service), -EINVAL);
	expect_eq(ANSWER(.flags = 4, .kind = TW_ACTION_KIND_ASAP, .service = service), -EINVAL);
	expect_eq(ANSWER(.flags = TW_ACTION_FLAG_BY_CALLER, .service = service), -EINVAL);
	expect_eq(ANSWER(.reserved = 1, .service = service), -EINVAL);
	expect_eq(ANSWER(.kind = TW_ACTION_KIND_ASYNC), -EINVAL);
	expect_eq(ANSWER(.kind = TW_ACTION_KIND_ASAP), -EINVAL);
	expect_eq(ANSWER(.kind = TW_ACTION_KIND_FRAME), -EINVAL);
	expect_eq(ANSWER(.kind = TW_ACTION_KIND_QUEUE, .executor = tw_executor_inline()), -EINVAL);
	expect_eq(ANSWER(.service = service, .executor = &unsound), -EINVAL);
	expect_eq(
	    ANSWER(.kind = TW_ACTION_KIND_FRAME, .service = service, .frames_per_second = 1001),
	    -EINVAL);
	expect_eq(ANSWER(.kind = TW_ACTION_KIND_FRAME, .service = service,
			 .frames_per_second = UINT32_MAX),
		  -EINVAL);
	expect_eq(ANSWER(.kind = TW_ACTION_KIND_ASAP, .service = service, .frames_per_second = 60),
		  -EINVAL);
	expect_eq(ANSWER(.kind = TW_ACTION_KIND_ASAP, .service = service, .wanted = told), -EINVAL);

	expect_eq(
	    ANSWER(.kind = TW_ACTION_KIND_FRAME, .service = service, .frames_per_second = 1000), 0);
	expect_eq(ANSWER(.kind = TW_ACTION_KIND_FRAME, .flags = TW_ACTION_FLAG_BY_CALLER), 0);
	expect_eq(ANSWER(.kind = TW_ACTION_KIND_QUEUE), 0);
	expect_eq(ANSWER(.kind = TW_ACTION_KIND_QUEUE, .flags = TW_ACTION_FLAG_CANCEL_BATCH), 0);
	expect_eq(ANSWER(.kind = TW_ACTION_KIND_QUEUE, .flags = TW_ACTION_FLAG_CANCEL_BATCH,
			 .wanted = told),
		  -EINVAL);
	expect_eq(ANSWER(.size = offsetof(struct tw_action_scheduler_config, executor),
			 .service = service),
		  0);
	rig_close(&rig);
}

Test(action_bad_input, of_a_newer_programs_config)
{
	struct {
		struct tw_action_scheduler_config config;
		uint64_t more;
	} longer = {{.size = sizeof(longer), .kind = TW_ACTION_KIND_QUEUE}, 1};
	tw_action_scheduler *out;
	expect_eq(tw_action_scheduler_create(&out, &longer.config), -E2BIG);
	longer.more = 0;
	expect_eq(tw_action_scheduler_create(&out, &longer.config), 0);
	expect_eq(tw_action_scheduler_destroy(out), 0);
}

Test(action_bad_input, of_a_service_that_is_closed)
{
	struct rig rig;
	rig_open(&rig, NULL);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, 0), 0);
	expect_eq(ANSWER(.service = rig.service), -ESHUTDOWN);
	rig_close(&rig);
}

Test(action_bad_input, of_actions)
{
	struct rig rig;
	rig_open(&rig, NULL);
	tw_action_scheduler *scheduler = scheduler_on(rig.service, TW_ACTION_KIND_ASYNC);
	tw_action *action = NULL;
	struct work work = {.scheduler = scheduler};
	expect_eq(tw_action_create(NULL, scheduler, work_run, NULL), -EINVAL);
	expect_eq(tw_action_create(&action, NULL, work_run, NULL), -EINVAL);
	expect_eq(tw_action_create(&action, scheduler, NULL, NULL), -EINVAL);
	cr_assert_null(action);
	expect_eq(tw_action_scheduler_schedule(scheduler, NULL, &work, 0, &action), -EINVAL);
	cr_assert_null(action);
	expect_eq(tw_action_scheduler_schedule(NULL, work_run, &work, 0, &action), -EINVAL);
	cr_assert_null(action);
	expect_eq(
	    tw_action_scheduler_schedule(scheduler, work_run, &work, TW_MAX_DELAY_NS + 1, &action),
	    -ERANGE);
	cr_assert_null(action);
	expect_eq(action_stats(scheduler).actions, 0);
	expect_eq(tw_action_schedule(NULL, &work, 0), -EINVAL);
	expect_eq(tw_action_run(NULL, &work), -EINVAL);
	expect_eq(tw_action_close(NULL, 0), -EINVAL);
	expect_eq(tw_action_destroy(NULL), TW_GONE);
	expect_eq(tw_action_state(NULL), -EINVAL);
	expect_eq(tw_action_scheduler_destroy(NULL), 0);
	expect_eq(tw_action_scheduler_now(NULL), 0);
	expect_eq(tw_action_scheduler_destroy(scheduler), 0);
	rig_close(&rig);
}

Test(action_bad_input, of_delays_leaves_the_action_as_it_was)
{
	struct rig rig;
	rig_open(&rig, NULL);
	tw_action_scheduler *scheduler = scheduler_on(rig.service, TW_ACTION_KIND_ASYNC);
	struct log log = {0};
	struct work work = {.log = &log, .id = 1}, other = {.log = &log, .id = 2};
	work_schedule(&work, scheduler, 5 * MS);
	expect_eq(tw_action_schedule(work.action, &other, TW_MAX_DELAY_NS + 1), -ERANGE);
	expect_eq(tw_action_schedule(work.action, &other, UINT64_MAX), -ERANGE);
	expect_eq(action_stats(scheduler).refused, 2);
	rig_advance(&rig, 5 * MS);
	expect_log(&log, 1);
	rig_advance(&rig, SECOND);
	/* longer than the service will live */
	work.error = tw_action_schedule(work.action, &other, TW_MAX_DELAY_NS);
	expect_eq(work.error, -ERANGE);
	tw_action_destroy(work.action);
	expect_eq(tw_action_scheduler_destroy(scheduler), 0);
	rig_close(&rig);
}

static tw_action_scheduler *frames;
static bool locked;

/* The text of the hook, and whether the hook could call the scheduler. */
static void keep_text_and_look(const char *told)
{
	locked = pthread_mutex_trylock(&frames->lock) != 0;
	if (!locked)
		pthread_mutex_unlock(&frames->lock);
	keep_text(told);
}

Test(action_bad_input, of_frames_at_the_end_of_the_clock_is_told_without_a_lock)
{
	struct rig rig;
	struct work work = {0};
	rig_open(&rig, NULL);
	frames = scheduler_on(rig.service, TW_ACTION_KIND_FRAME);
	expect_eq(tw_action_create(&work.action, frames, work_run, NULL), 0);
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS + TW_MAX_DELAY_NS), 0);
	tw_set_misuse_hook(keep_text_and_look);
	work.error = tw_action_schedule(work.action, &work, 0);
	expect_eq(work.error, -ERANGE);
	cr_assert_str_eq(text, "tw_action_schedule: the clock is at the end of its range");
	expect_eq(locked, false);
	expect_eq(submit_immediate(frames, free, NULL), -ERANGE);
	cr_assert_str_eq(text, "tw_immediate_submit: the clock is at the end of its range");
	expect_eq(locked, false);
	tw_set_misuse_hook(NULL);
	expect_eq(action_stats(frames).refused, 2);
	expect_eq(action_stats(frames).turns, 0);
	tw_action_destroy(work.action);
	expect_eq(tw_action_scheduler_destroy(frames), 0);
	rig_close(&rig);
}

Test(action_bad_input, of_a_delay_without_a_service)
{
	const enum tw_action_kind kinds[] = {TW_ACTION_KIND_QUEUE, TW_ACTION_KIND_ASAP,
					     TW_ACTION_KIND_FRAME};
	for (int k = 0; k < 3; k++) {
		struct tw_action_scheduler_config config = {
		    .size = sizeof(config),
		    .kind = kinds[k],
		    .flags = kinds[k] == TW_ACTION_KIND_QUEUE ? 0 : TW_ACTION_FLAG_BY_CALLER};
		tw_action_scheduler *scheduler = scheduler_of(&config);
		struct work work = {.scheduler = scheduler};
		expect_eq(tw_action_create(&work.action, scheduler, work_run, NULL), 0);
		work.error = tw_action_schedule(work.action, &work, 1);
		expect_eq(work.error, -EINVAL);
		expect_ne(tw_action_state(work.action), TW_ACTION_STATE_ARMED);
		tw_action_destroy(work.action);
		expect_eq(tw_action_scheduler_destroy(scheduler), 0);
	}
}

Test(action_bad_input, of_driving)
{
	struct rig rig;
	rig_open(&rig, NULL);
	tw_action_scheduler *async = scheduler_on(rig.service, TW_ACTION_KIND_ASYNC);
	tw_action_scheduler *asap = scheduler_on(rig.service, TW_ACTION_KIND_ASAP);
	expect_eq(tw_action_scheduler_flush(NULL), -EINVAL);
	expect_eq(tw_action_scheduler_flush(async), -EINVAL);
	expect_eq(tw_action_scheduler_flush(asap), -EINVAL);
	expect_eq(tw_action_scheduler_destroy(async), 0);
	expect_eq(tw_action_scheduler_destroy(asap), 0);
	rig_close(&rig);
}

static void destroy_scheduler(struct work *work)
{
	work->other_answer = tw_action_scheduler_destroy(work->scheduler);
}

Test(action_bad_input, of_ends_and_statistics)
{
	struct rig rig;
	rig_open(&rig, NULL);
	tw_action_scheduler *scheduler = scheduler_on(rig.service, TW_ACTION_KIND_ASYNC);
	struct work work = {.act = destroy_scheduler};
	struct tw_action_scheduler_stats small = {.size = sizeof(size_t)}, one;
	work_schedule(&work, scheduler, MS);
	expect_eq(tw_action_scheduler_destroy(scheduler), -EBUSY);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, 0), -EBUSY);
	rig_advance(&rig, SECOND);
	expect_eq(work.other_answer, -EDEADLK);
	expect_eq(tw_action_scheduler_stats(NULL, &one), -EINVAL);
	expect_eq(tw_action_scheduler_stats(scheduler, NULL), -EINVAL);
	expect_eq(tw_action_scheduler_stats(scheduler, &small), -EINVAL);
	memset(&one, 0x5a, sizeof(one));
	one.size = offsetof(struct tw_action_scheduler_stats, armed);
	expect_eq(tw_action_scheduler_stats(scheduler, &one), 0);
	expect_eq(one.actions, 1);
	expect_eq(one.armed, 0x5a5a5a5a5a5a5a5a);
	tw_action_destroy(work.action);
	expect_eq(tw_action_scheduler_destroy(scheduler), 0);
	rig_close(&rig);
}

Test(action_bad_input, of_too_little_room_leaves_the_action_as_it_was)
{
	struct rig rig;
	struct tw_service_config cfg = rig_config();
	cfg.max_timers = 1;
	rig_open(&rig, &cfg);
	tw_action_scheduler *scheduler = scheduler_on(rig.service, TW_ACTION_KIND_ASYNC);
	struct work works[600] = {{0}};
	int n = 0, error = 0;
	for (; !error; n++) {
		works[n].scheduler = scheduler;
		expect_eq(tw_action_create(&works[n].action, scheduler, work_run, NULL), 0);
		error = tw_action_schedule(works[n].action, &works[n], SECOND);
	}
	expect_eq(error, -EAGAIN);
	expect_ne(tw_action_state(works[n - 1].action), TW_ACTION_STATE_ARMED);
	/* it has a timer, which is moved */
	error = tw_action_schedule(works[0].action, &works[0], MS);
	expect_eq(error, 0);
	rig_advance(&rig, MS);
	expect_eq(works[0].runs, 1);
	for (int i = 0; i < n; i++)
		tw_action_destroy(works[i].action);
	expect_eq(tw_action_scheduler_destroy(scheduler), 0);
	rig_close(&rig);
}

Test(action_bad_input, out_of_memory)
{
	tw_action_scheduler *scheduler = NULL;
	tw_action *action = NULL;
	struct tw_action_scheduler_config config = {
	    .size = sizeof(config), .kind = TW_ACTION_KIND_ASAP, .flags = TW_ACTION_FLAG_BY_CALLER};
	faults_arm(0, true);
	expect_eq(tw_action_scheduler_create(&scheduler, &config), -ENOMEM);
	faults_disarm();
	cr_assert_null(scheduler);
	scheduler = scheduler_of(&config);
	faults_arm(0, true);
	int r = tw_action_create(&action, scheduler, work_run, NULL);
	faults_disarm();
	expect_eq(r, -ENOMEM);
	for (long nth = 0; nth < 2; nth++) {
		faults_arm(nth, true);
		r = tw_immediate_submit(scheduler, nothing, NULL, NULL);
		faults_disarm();
		expect_eq(r, -ENOMEM);
	}
	expect_eq(action_stats(scheduler).armed, 0);
	expect_eq(tw_action_scheduler_destroy(scheduler), 0);
}
