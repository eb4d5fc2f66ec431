/*
 * The descriptor of a service in the user's own loop, on the real clocks: when it is readable, for
 * whose calls, and whose it is. Bounds are one-sided.
 */
#include <errno.h>
#include <stdlib.h>

#include "test/support/by_hand.h"
#include "test/support/faults.h"
#include "test/support/shot.h"
#include "test/support/threads.h"
#include "test/support/timer_script.h"

TestSuite(driver_real_loop, .timeout = 60);

enum { MOST = 3 * 4096 };

static tw_timer many[MOST];
static atomic_int marks;

static tw_service *here(void)
{
	return timer_stage.rig->service;
}

static bool is_readable(int timeout_ms)
{
	return readable(tw_service_fd(here()), timeout_ms);
}

/* As the loop would sleep: a span, or not at all. */
static void say_readable(const struct words *words)
{
	say(is_readable(words->numbers ? (int)words->number[0] : 0) ? "readable" : "quiet");
}

static void descriptor(const struct words *words)
{
	int fd = tw_service_fd(here());
	if (fd < 0)
		say_answer(fd);
}

/* Turns of the loop: until n callbacks have run; or while it is woken. */
static void turn(const struct words *words)
{
	turn_until(here(), tw_service_fd(here()), (int)words->number[0]);
}

static void turn_while_readable(const struct words *words)
{
	while (is_readable(0))
		expect_eq(tw_service_advance(here(), TW_NO_LIMIT), 0);
}

static void mark(const struct words *words)
{
	marks++;
}

static void until_marked(const struct words *words)
{
	while (!marks) {
		expect_eq(is_readable(FOR_EVER), true);
		expect_ge(tw_service_advance(here(), TW_NO_LIMIT), 0);
	}
	marks = 0;
}

static void schedule_many(const struct words *words)
{
	for (int i = 0; i < words->number[0]; i++)
		expect_eq(tw_schedule(here(), 2 * HOUR, nothing, NULL, &many[i]), 0);
}

static void cancel_many(const struct words *words)
{
	for (int i = 0; i < words->number[0]; i++)
		expect_eq(tw_cancel(here(), many[i]), TW_CANCELLED);
}

static void churn(const struct words *words)
{
	for (int i = 0; i < words->number[0]; i++) {
		expect_eq(tw_schedule(here(), 2 * HOUR, nothing, NULL, &many[0]), 0);
		expect_eq(tw_cancel(here(), many[0]), TW_CANCELLED);
	}
}

static void few_dead(const struct words *words)
{
	expect_le(stats_of(here()).dead_entries, 2 * 4096);
}

static const struct verb verbs[] = {{"readable", say_readable},
				    {"descriptor", descriptor},
				    {"turn", turn},
				    {"turns", turn_while_readable},
				    {"mark", mark},
				    {"until_marked", until_marked},
				    {"many", schedule_many},
				    {"cancel_many", cancel_many},
				    {"churn", churn},
				    {"few_dead", few_dead},
				    {NULL, NULL}};

/* 4096: a lane is packed at that. */
static const struct script scripts[] = {
    /* G9: in an empty service, and in one whose timers are far, nobody wakes up */
    {"is quiet while nothing is due",
     {{"given real by_hand; readable 150; timer 0..63 in=3600000 plain; readable; poll",
       "quiet, readable"},
      {"readable 150; timer 0 in=7200000 plain; readable 150", "quiet, quiet"}}},
    {"knows what came before it",
     {{"given real by_hand; timer 0 in=5 plain; turn 1; timer 0 in=0 plain; turn 1; readable",
       "run 0, run 0, quiet"}}},
    {"stays readable after a budget is used up",
     {{"given real by_hand; descriptor; timer 0..5 at=-1000000 plain; readable; poll 2",
       "readable, run 0, run 1, 2"},
      {"readable; poll 2; readable; poll 2; readable",
       "readable, run 2, run 3, 2, readable, run 4, run 5, 2, quiet"}}},
    {"rings at a close",
     {{"given real by_hand; timer 0 in=3600000; descriptor; poll; readable; close drop; readable",
       "quiet, 0 dropped, readable"},
      {"poll; readable; poll; readable; descriptor", "ESHUTDOWN, readable, ESHUTDOWN, readable"}}},
    {"is not made for a closed service",
     {{"given real by_hand; close drop; descriptor", "ESHUTDOWN"}}},
    {"wakes for what another thread schedules",
     {{"given real by_hand; timer 0 in=3600000 plain; descriptor; poll; readable", "quiet"},
      {"beside 1 {timer 1 in=0 plain}; joined 1; turn 1; readable", "run 1, quiet"},
      {"beside 1 {timer 1 in=0 plain}; joined 1; turn 1; readable", "run 1, quiet"}}},
    {"wakes for what another thread moves to earlier",
     {{"given real by_hand; timer 0 in=3600000 plain; descriptor; poll; readable", "quiet"},
      {"beside 1 {reset 0 by=1}; joined 1; turn 1; readable", "run 0, quiet"}}},
    /* the members end inside the call: the loop learns of it from its descriptor alone */
    {"wakes for a completion",
     {{"given real by_hand; timer 0 in=3600000 plain; group 0 1; descriptor; poll; readable",
       "quiet"},
      {"beside 1 {then 0 {mark}}; joined 1; until_marked; turns; readable 100", "done 0, quiet"},
      {"timer 1..60 in=3600000 group=1 plain; turns; beside 1 {then 1 {mark}}; joined 1", ""},
      {"until_marked; turns; readable 100", "done 1, quiet"}}},
    {"wakes for much that lives",
     {{"given real by_hand; timer 0 in=3600000 plain; descriptor; poll; readable", "quiet"},
      {"beside 1 {many 4096}; joined 1; readable; poll; readable", "readable, quiet"}}},
    /* G11. The same lane all the time, since its thread has ended */
    {"wakes for cancels that leave much behind",
     {{"given real by_hand; timer 0 in=3600000 plain; descriptor; poll; readable", "quiet"},
      {"beside 1 {many 12288}; joined 1; turns; beside 1 {cancel_many 12288}; joined 1", ""},
      {"readable; turns; few_dead", "readable"}}},
    {"sleeps while cancels leave little behind",
     {{"given real by_hand; timer 0 in=3600000 plain; descriptor; poll; readable", "quiet"},
      {"beside 1 {churn 12288}; joined 1; readable", "quiet"}}},
};

Test(driver_real_loop, follows_the_scripts)
{
	PLAY(&timer_stage, verbs, scripts);
}

/* ------------------------------------------------------------ without a script */

static void expect_readable_when_due(tw_clock *clock)
{
	static struct shot shots[50];
	int before = descriptors_open();
	tw_service *service = open_by_hand(clock);
	int fd = tw_service_fd(service);
	expect_ge(fd, 0);
	expect_eq(tw_service_fd(service), fd);
	expect_eq(descriptors_open(), before + 3);
	uint64_t seed = 3;
	for (int i = 0; i < 50; i++) {
		shots[i] = (struct shot){.service = service};
		schedule_shot(&shots[i], random_below(&seed, 100 * MS));
	}
	turn_until(service, fd, 50);
	for (int i = 0; i < 50; i++) {
		expect_eq(shots[i].runs, 1);
		expect_eq(shots[i].early, 0);
	}
	expect_eq(readable(fd, 0), false);
	expect_eq(tw_service_destroy(service), 0);
	expect_eq(descriptors_open(), before);
}

Test(driver_real_loop, is_readable_when_it_is_time_and_is_the_services)
{
	expect_readable_when_due(tw_clock_monotonic());
	expect_readable_when_due(tw_clock_boottime());
}

static void *schedule_past(void *service)
{
	return (void *)(intptr_t)tw_schedule_at(service, 0, nothing, NULL, NULL);
}

static void schedule_from_another_thread(void *service)
{
	pthread_t thread;
	faults_at_reads(NULL, NULL); /* once */
	expect_eq(pthread_create(&thread, NULL, schedule_past, service), 0);
	pthread_join(thread, NULL);
}

/*
 * The bell rings once to call the loop, and again after the first ring was noticed but before the
 * descriptor was cleared.
 */
Test(driver_real_loop, wakes_up_after_a_ring_that_came_while_the_last_one_was_cleared)
{
	tw_service *service = open_by_hand(NULL);
	int fd = tw_service_fd(service);
	expect_eq(tw_service_advance(service, TW_NO_LIMIT), 0);
	schedule_from_another_thread(service);
	faults_at_reads(schedule_from_another_thread, service);
	expect_eq(tw_service_advance(service, TW_NO_LIMIT), 2);
	schedule_from_another_thread(service);
	turn_until(service, fd, 1); /* which a loop that sleeps through it never does */
	expect_eq(readable(fd, 0), false);
	expect_eq(tw_service_destroy(service), 0);
}

/* -------------------------------------------------- many turns in one tick */

/* Many times over, so that most of it happens within a tick that was turned through already. */
Test(driver_real_loop, what_is_past_runs_in_the_next_advance)
{
	tw_service *service = open_by_hand(NULL);
	for (int i = 0; i < 1000; i++) {
		tw_timer timer;
		uint64_t past_ns = tw_service_now(service) - 2 * MS;
		struct tw_task task = {
		    .size = sizeof task, .fn = nothing, .when_ns = 1, .flags = TW_TASK_AT};
		expect_eq(tw_schedule_at(service, past_ns, nothing, NULL, NULL), 0);
		expect_eq(tw_service_advance(service, TW_NO_LIMIT), 1);
		expect_eq(tw_schedule(service, HOUR, nothing, NULL, &timer), 0);
		expect_eq(tw_service_advance(service, TW_NO_LIMIT), 0);
		expect_eq(tw_reset_at(service, timer, past_ns), 0);
		expect_eq(tw_service_advance(service, TW_NO_LIMIT), 1);
		expect_eq(tw_schedule_task(service, &task, NULL), 0);
		expect_eq(tw_service_advance(service, TW_NO_LIMIT), 1);
	}
	expect_eq(tw_service_destroy(service), 0);
}

/*
 * Entries of later ticks may wait in a lane until the next tick, also while more entries come. They
 * do not wait until the lane is full.
 */
Test(driver_real_loop, what_comes_later_is_drained_once_a_tick_or_before_its_lane_is_full)
{
	static const struct tw_service_config configs[] = {
	    {.tick_ns = MS}, {.tick_ns = SECOND, .lane_entries = 1024}};
	for (int i = 0; i < 2; i++) {
		struct tw_service_config cfg = configs[i];
		tw_service *service;
		cfg.size = sizeof cfg;
		cfg.drive = TW_DRIVE_MANUAL;
		cfg.executor = tw_executor_inline();
		expect_eq(tw_service_create(&service, &cfg), 0);
		expect_eq(tw_service_advance(service, TW_NO_LIMIT), 0);
		uint64_t begun_ns = tw_service_now(service);
		for (int n = 0; n < (i ? 20000 : 1000); n++) {
			expect_eq(tw_schedule(service, HOUR, nothing, NULL, NULL), 0);
			expect_eq(tw_service_advance(service, TW_NO_LIMIT), 0);
		}
		uint64_t took_ticks = (tw_service_now(service) - begun_ns) / cfg.tick_ns + 2;
		expect_le(stats_of(service).ticks, i ? UINT32_MAX : took_ticks);
		expect_eq(tw_service_destroy(service), 0);
	}
}

/* ------------------------------------------------------------ which calls ring */

/* Ticks so long that the wheel plans for a timer's own tick, and that tests do not last one. */
#define TICK_NS SECOND

/* A loop that has planned for the tick of one timer, half a minute ahead. Its end. */
static uint64_t open_planned(tw_service **service, tw_clock *clock)
{
	struct tw_service_config cfg = {.size = sizeof cfg,
					.drive = TW_DRIVE_MANUAL,
					.executor = tw_executor_inline(),
					.clock = clock,
					.tick_ns = TICK_NS};
	uint64_t plan_ns;
	expect_eq(tw_service_create(service, &cfg), 0);
	expect_ge(tw_service_fd(*service), 0);
	expect_eq(tw_schedule(*service, 30 * SECOND, nothing, NULL, NULL), 0);
	expect_eq(tw_service_next_expiry(*service, &plan_ns), 0);
	expect_eq(tw_service_advance(*service, TW_NO_LIMIT), 0);
	expect_eq(readable(tw_service_fd(*service), 0), false);
	return plan_ns;
}

enum way { SCHEDULE, TASK, RESET, RESET_NAMED, WAYS };

static void bring(tw_service *service, enum way way, uint64_t at_ns)
{
	tw_timer timer;
	struct tw_task task = {.size = sizeof task,
			       .fn = nothing,
			       .when_ns = way == TASK ? at_ns : 60 * SECOND,
			       .flags = way == TASK ? TW_TASK_AT : 0,
			       .name = way == RESET ? NULL : "ring"};
	if (way == SCHEDULE)
		expect_eq(tw_schedule_at(service, at_ns, nothing, NULL, NULL), 0);
	else
		expect_eq(tw_schedule_task(service, &task, &timer), 0);
	if (way >= RESET)
		expect_eq(tw_reset_at(service, timer, at_ns), 0);
}

/* Those that bring an earlier tick than the planned one. Deadlines count as their ticks' ends. */
Test(driver_real_loop, rings_for_an_earlier_tick_only)
{
	for (enum way way = SCHEDULE; way < WAYS; way++) {
		tw_service *service;
		uint64_t plan_ns = open_planned(&service, way == TASK ? tw_clock_boottime() : NULL);
		const uint64_t at_ns[] = {plan_ns, plan_ns - 1, plan_ns - TICK_NS + 1,
					  plan_ns - TICK_NS};
		for (int i = 0; i < 4; i++) {
			bring(service, way, at_ns[i]);
			expect_eq(readable(tw_service_fd(service), 0), i == 3);
			expect_eq(tw_service_advance(service, TW_NO_LIMIT), 0);
			expect_eq(readable(tw_service_fd(service), 0), false);
		}
		expect_eq(tw_service_destroy(service), 0);
	}
}

/*
 * A loop that gives each request a timeout and cancels it. Its turns are much shorter than a tick,
 * so nearly all deadlines are in the planned tick. Rings that remain are for a lane that is not
 * packed.
 */
Test(driver_real_loop, request_timeouts_hardly_ring)
{
	enum { TURNS = 100000 };
	tw_service *service;
	tw_timer timer = {0};
	int rings = 0;
	open_planned(&service, NULL);
	for (int i = 0; i < TURNS; i++) {
		uint64_t at_ns = tw_service_now(service) + 20 * SECOND;
		tw_cancel(service, timer);
		expect_eq(tw_schedule_at(service, at_ns, nothing, NULL, &timer), 0);
		if (readable(tw_service_fd(service), 0)) {
			rings++;
			expect_eq(tw_service_advance(service, TW_NO_LIMIT), 0);
		}
	}
	expect_le(rings, TURNS / 1000);
	expect_eq(tw_service_destroy(service), 0);
}
