/* The descriptor of a service in the user's own loop, on the real clocks. Bounds are one-sided. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "test/support/faults.h"
#include "test/support/shot.h"

TestSuite(driver_real_loop, .timeout = 60);

enum { NOT_LONG_MS = 150, FOR_EVER = -1 };

static tw_service *open_by_hand(tw_clock *clock)
{
	struct tw_service_config cfg = {.size = sizeof(cfg),
					.drive = TW_DRIVE_MANUAL,
					.executor = tw_executor_inline(),
					.clock = clock};
	tw_service *service = NULL;
	expect_eq(tw_service_create(&service, &cfg), 0);
	return service;
}

static bool readable(int fd, int timeout_ms)
{
	struct pollfd watched = {.fd = fd, .events = POLLIN};
	return poll(&watched, 1, timeout_ms) == 1 && watched.revents == POLLIN;
}

static void nothing(void *arg)
{
	(void)arg;
}

/* What a loop does with the descriptor, until `runs` callbacks have run. */
static void turn_until(tw_service *service, int fd, int runs)
{
	while (runs > 0) {
		expect_eq(readable(fd, FOR_EVER), true);
		int ran = tw_service_advance(service, TW_NO_LIMIT);
		expect_ge(ran, 0);
		runs -= ran;
	}
}

/* ------------------------------------------------------------ when readable */

static void expect_readable_when_due(tw_clock *clock)
{
	tw_service *service = open_by_hand(clock);
	static struct shot shots[50];
	int fd = tw_service_fd(service);
	expect_ge(fd, 0);
	expect_eq(tw_service_fd(service), fd);
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
}

Test(driver_real_loop, is_readable_when_it_is_time)
{
	expect_readable_when_due(tw_clock_monotonic());
}

Test(driver_real_loop, is_readable_when_it_is_time_on_boottime)
{
	expect_readable_when_due(tw_clock_boottime());
}

/* G9: in an empty service, and in one whose timers are far, nobody wakes up. */
Test(driver_real_loop, is_quiet_while_nothing_is_due)
{
	tw_service *service = open_by_hand(NULL);
	int fd = tw_service_fd(service);
	expect_eq(readable(fd, NOT_LONG_MS), false);
	for (int i = 0; i < 1000; i++)
		expect_eq(tw_schedule(service, HOUR + (uint64_t)i * SECOND, nothing, NULL, NULL),
			  0);
	expect_eq(readable(fd, 0), true); /* the first one is earlier than never */
	expect_eq(tw_service_advance(service, TW_NO_LIMIT), 0);
	expect_eq(readable(fd, NOT_LONG_MS), false);
	expect_eq(tw_schedule(service, 2 * HOUR, nothing, NULL, NULL), 0);
	expect_eq(readable(fd, NOT_LONG_MS), false);
	expect_eq(tw_service_destroy(service), 0);
}

/* What was scheduled before the first call counts, too. */
Test(driver_real_loop, knows_what_came_before_it)
{
	tw_service *service = open_by_hand(NULL);
	expect_eq(tw_schedule(service, 5 * MS, nothing, NULL, NULL), 0);
	int fd = tw_service_fd(service);
	turn_until(service, fd, 1);
	expect_eq(tw_schedule(service, 0, nothing, NULL, NULL), 0);
	turn_until(service, fd, 1);
	expect_eq(readable(fd, 0), false);
	expect_eq(tw_service_destroy(service), 0);
}

Test(driver_real_loop, stays_readable_after_a_budget_is_used_up)
{
	tw_service *service = open_by_hand(NULL);
	int fd = tw_service_fd(service);
	for (int i = 0; i < 100; i++)
		expect_eq(tw_schedule_at(service, 0, nothing, NULL, NULL), 0);
	for (int i = 0; i < 100; i += 10) {
		expect_eq(readable(fd, 0), true);
		expect_eq(tw_service_advance(service, 10), 10);
	}
	expect_eq(readable(fd, 0), false);
	expect_eq(tw_service_destroy(service), 0);
}

struct again {
	tw_service *service;
	int runs;
};

static void again(void *arg)
{
	struct again *again = arg;
	again->runs++;
	tw_reset(again->service, tw_self(), again->runs < 20 ? 0 : HOUR);
}

/* Each call ends, and the descriptor says that there is more. */
Test(driver_real_loop, goes_on_with_what_rearms_itself_at_once)
{
	tw_service *service = open_by_hand(NULL);
	struct again self = {service, 0};
	int fd = tw_service_fd(service);
	expect_eq(tw_schedule(service, 0, again, &self, NULL), 0);
	turn_until(service, fd, 20);
	expect_eq(self.runs, 20);
	expect_eq(readable(fd, 2), false);
	expect_eq(tw_service_destroy(service), 0);
}

Test(driver_real_loop, can_be_watched_by_epoll)
{
	tw_service *service = open_by_hand(NULL);
	int outer = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = {.events = EPOLLIN};
	expect_eq(epoll_ctl(outer, EPOLL_CTL_ADD, tw_service_fd(service), &event), 0);
	for (int i = 0; i < 20; i++) {
		expect_eq(tw_schedule(service, MS, nothing, NULL, NULL), 0);
		int ran = 0;
		while (ran == 0) {
			expect_eq(epoll_wait(outer, &event, 1, FOR_EVER), 1);
			ran = tw_service_advance(service, TW_NO_LIMIT);
		}
		expect_eq(epoll_wait(outer, &event, 1, 0), 0);
	}
	close(outer);
	expect_eq(tw_service_destroy(service), 0);
}

/* ------------------------------------------------------------ other threads */

/* One errand of another thread, after which the loop is wanted. */
struct errand {
	tw_service *service;
	tw_timer far;
	int answer;
};

static void in_a_thread(void *(*run)(void *), struct errand *errand)
{
	pthread_t thread;
	expect_eq(pthread_create(&thread, NULL, run, errand), 0);
	pthread_join(thread, NULL);
	expect_eq(errand->answer, 0);
}

static void *schedule_earlier(void *arg)
{
	struct errand *errand = arg;
	errand->answer = tw_schedule(errand->service, 0, nothing, NULL, NULL);
	return NULL;
}

static void *reset_to_earlier(void *arg)
{
	struct errand *errand = arg;
	errand->answer = tw_reset(errand->service, errand->far, MS);
	return NULL;
}

static void *schedule_many(void *arg)
{
	struct errand *errand = arg;
	/* later than the plan, but more than a segment */
	for (int i = 0; i < 256 && !errand->answer; i++)
		errand->answer = tw_schedule(errand->service, 2 * HOUR, nothing, NULL, NULL);
	return NULL;
}

static void *cancel_many(void *arg)
{
	struct errand *errand = arg;
	tw_timer timers[100];
	for (int i = 0; i < 100 && !errand->answer; i++)
		errand->answer = tw_schedule(errand->service, 2 * HOUR, nothing, NULL, &timers[i]);
	for (int i = 0; i < 100 && !errand->answer; i++)
		errand->answer = tw_cancel(errand->service, timers[i]);
	return NULL;
}

/* A service at rest with one far timer, whose descriptor is not readable. */
static int open_at_rest(struct errand *errand)
{
	*errand = (struct errand){.service = open_by_hand(NULL)};
	expect_eq(tw_schedule(errand->service, HOUR, nothing, NULL, &errand->far), 0);
	int fd = tw_service_fd(errand->service);
	expect_eq(readable(fd, 0), false);
	return fd;
}

Test(driver_real_loop, wakes_for_what_another_thread_schedules)
{
	struct errand errand;
	int fd = open_at_rest(&errand);
	for (int i = 0; i < 20; i++) {
		in_a_thread(schedule_earlier, &errand);
		turn_until(errand.service, fd, 1);
		expect_eq(readable(fd, 0), false);
	}
	expect_eq(tw_service_destroy(errand.service), 0);
}

static void *schedule_past(void *arg)
{
	struct errand *errand = arg;
	errand->answer = tw_schedule_at(errand->service, 0, nothing, NULL, NULL);
	return NULL;
}

static void schedule_from_another_thread(void *arg)
{
	faults_at_reads(NULL, NULL); /* once */
	in_a_thread(schedule_past, arg);
}

/*
 * The bell rings once to call the loop, and again after the first ring was noticed but before the
 * descriptor was cleared.
 */
Test(driver_real_loop, wakes_up_after_a_ring_that_came_while_the_last_one_was_cleared)
{
	struct errand errand;
	int fd = open_at_rest(&errand);
	in_a_thread(schedule_past, &errand);
	faults_at_reads(schedule_from_another_thread, &errand);
	expect_eq(tw_service_advance(errand.service, TW_NO_LIMIT), 2);
	in_a_thread(schedule_past, &errand);
	turn_until(errand.service, fd, 1); /* which a loop that sleeps through it never does */
	expect_eq(readable(fd, 0), false);
	expect_eq(tw_service_destroy(errand.service), 0);
}

Test(driver_real_loop, wakes_for_what_another_thread_moves_to_earlier)
{
	struct errand errand;
	int fd = open_at_rest(&errand);
	in_a_thread(reset_to_earlier, &errand);
	turn_until(errand.service, fd, 1);
	expect_eq(readable(fd, 0), false);
	expect_eq(tw_service_destroy(errand.service), 0);
}

Test(driver_real_loop, wakes_for_a_full_segment)
{
	struct errand errand;
	int fd = open_at_rest(&errand);
	in_a_thread(schedule_many, &errand);
	expect_eq(readable(fd, 0), true);
	expect_eq(tw_service_advance(errand.service, TW_NO_LIMIT), 0);
	expect_eq(readable(fd, 0), false);
	expect_eq(tw_service_destroy(errand.service), 0);
}

/* G11: every 4096th cancel of a thread. The same lane all the time, since its thread has ended. */
Test(driver_real_loop, wakes_for_many_cancels)
{
	struct errand errand;
	int fd = open_at_rest(&errand), rung = 0;
	for (int i = 0; i < 41; i++) {
		in_a_thread(cancel_many, &errand);
		rung += readable(fd, 0);
		while (readable(fd, 0))
			expect_eq(tw_service_advance(errand.service, TW_NO_LIMIT), 0);
	}
	expect_ge(rung, 1);
	expect_eq(tw_service_destroy(errand.service), 0);
}

/*
 * Several threads, early deadlines, a loop that sleeps without a timeout: a push that it sleeps
 * through hangs here.
 */
struct pusher {
	tw_service *service;
	struct shot *shots;
	atomic_int failed;
	pthread_t thread;
};

enum { PUSHERS = 3, PUSHES = 400 };

static void *push(void *arg)
{
	struct pusher *pusher = arg;
	sem_t done;
	sem_init(&done, 0, 0);
	for (int i = 0; i < PUSHES; i++) {
		struct shot *shot = &pusher->shots[i];
		*shot = (struct shot){.service = pusher->service, .done = &done};
		uint64_t delay_ns = (uint64_t)(i % 3) * MS / 2;
		shot->due_ns = tw_service_now(pusher->service) + delay_ns;
		if (tw_schedule(pusher->service, delay_ns, shoot, shot, &shot->timer))
			atomic_fetch_add(&pusher->failed, 1);
		else
			await(&done, 1);
	}
	return NULL;
}

Test(driver_real_loop, sleeps_through_no_push)
{
	static struct shot shots[PUSHERS][PUSHES];
	struct errand errand;
	int fd = open_at_rest(&errand);
	struct pusher pushers[PUSHERS];
	for (int i = 0; i < PUSHERS; i++) {
		pushers[i] = (struct pusher){.service = errand.service, .shots = shots[i]};
		expect_eq(pthread_create(&pushers[i].thread, NULL, push, &pushers[i]), 0);
	}
	turn_until(errand.service, fd, PUSHERS * PUSHES);
	for (int i = 0; i < PUSHERS; i++) {
		pthread_join(pushers[i].thread, NULL);
		expect_eq(pushers[i].failed, 0);
		for (int j = 0; j < PUSHES; j++)
			expect_eq(shots[i][j].early, 0);
	}
	expect_eq(tw_service_destroy(errand.service), 0);
}

/* ------------------------------------------------------------ whose it is */

static int open_descriptors(void)
{
	int count = 0;
	DIR *dir = opendir("/proc/self/fd");
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

Test(driver_real_loop, is_the_services)
{
	int before = open_descriptors();
	tw_service *service = open_by_hand(NULL);
	expect_eq(open_descriptors(), before);
	tw_service_fd(service);
	expect_eq(open_descriptors(), before + 3);
	tw_service_fd(service);
	expect_eq(open_descriptors(), before + 3);
	expect_eq(tw_service_destroy(service), 0);
	expect_eq(open_descriptors(), before);
}

Test(driver_real_loop, tells_of_close)
{
	tw_service *service = open_by_hand(NULL);
	int fd = tw_service_fd(service);
	expect_eq(tw_schedule(service, HOUR, nothing, NULL, NULL), 0);
	expect_eq(tw_service_advance(service, TW_NO_LIMIT), 0);
	expect_eq(readable(fd, 0), false);
	expect_eq(tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER), 0);
	for (int i = 0; i < 3; i++) {
		expect_eq(readable(fd, 0), true);
		expect_eq(tw_service_advance(service, TW_NO_LIMIT), -ESHUTDOWN);
	}
	expect_eq(tw_service_fd(service), fd);
	expect_eq(tw_service_destroy(service), 0);
	service = open_by_hand(NULL);
	expect_eq(tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER), 0);
	expect_eq(tw_service_fd(service), -ESHUTDOWN);
	expect_eq(tw_service_destroy(service), 0);
}

/* The system refuses each of the three descriptors, one after the other. */
Test(driver_real_loop, without_descriptors_nothing_is_changed)
{
	tw_service *service = open_by_hand(NULL);
	struct rlimit limit, few;
	expect_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	int before = open_descriptors(), next = open("/dev/null", O_RDONLY);
	close(next);
	for (rlim_t left = 0; left < 3; left++) {
		few = (struct rlimit){(rlim_t)next + left, limit.rlim_max};
		expect_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
		int answer = tw_service_fd(service);
		expect_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
		expect_eq(answer, -EMFILE);
		expect_eq(open_descriptors(), before);
	}
	int fd = tw_service_fd(service);
	expect_ge(fd, 0);
	expect_eq(tw_schedule(service, 0, nothing, NULL, NULL), 0);
	turn_until(service, fd, 1);
	expect_eq(tw_service_destroy(service), 0);
}

static void try_to_open(void *arg)
{
	struct errand *errand = arg;
	errand->answer = tw_service_fd(errand->service);
}

Test(driver_real_loop, is_not_made_by_a_callback)
{
	struct errand errand = {.service = open_by_hand(NULL)};
	expect_eq(tw_schedule_at(errand.service, 0, try_to_open, &errand, NULL), 0);
	expect_eq(tw_service_advance(errand.service, TW_NO_LIMIT), 1);
	expect_eq(errand.answer, -EBUSY);
	int fd = tw_service_fd(errand.service);
	expect_eq(tw_schedule_at(errand.service, 0, try_to_open, &errand, NULL), 0);
	expect_eq(tw_service_advance(errand.service, TW_NO_LIMIT), 1);
	expect_eq(errand.answer, fd);
	expect_eq(tw_service_destroy(errand.service), 0);
}

/* -------------------------------------------------- many turns in one tick */

/* Many times over, so that most of it happens within a tick that was turned through already. */
Test(driver_real_loop, what_is_past_runs_in_the_next_advance)
{
	tw_service *service = open_by_hand(NULL);
	for (int i = 0; i < 1000; i++) {
		tw_timer timer;
		expect_eq(
		    tw_schedule_at(service, tw_service_now(service) - 2 * MS, nothing, NULL, NULL),
		    0);
		expect_eq(tw_service_advance(service, TW_NO_LIMIT), 1);
		expect_eq(tw_schedule(service, 3600 * TW_SECOND, nothing, NULL, &timer), 0);
		expect_eq(tw_service_advance(service, TW_NO_LIMIT), 0);
		expect_eq(tw_reset_at(service, timer, tw_service_now(service) - 2 * MS), 0);
		expect_eq(tw_service_advance(service, TW_NO_LIMIT), 1);
		struct tw_task task = {
		    .size = sizeof task, .fn = nothing, .when_ns = 1, .flags = TW_TASK_AT};
		expect_eq(tw_schedule_bulk(service, &task, 1, NULL), 0);
		expect_eq(tw_service_advance(service, TW_NO_LIMIT), 1);
	}
	expect_eq(tw_service_destroy(service), 0);
}

/* A loop that turns many times in a tick drains once, whatever it schedules for later. */
Test(driver_real_loop, what_comes_later_is_drained_once_a_tick)
{
	tw_service *service = open_by_hand(NULL);
	struct tw_service_stats stats = {.size = sizeof stats};
	expect_eq(tw_service_advance(service, TW_NO_LIMIT), 0);
	uint64_t begun_ns = tw_service_now(service);
	for (int i = 0; i < 1000; i++) {
		expect_eq(tw_schedule(service, 3600 * TW_SECOND, nothing, NULL, NULL), 0);
		expect_eq(tw_service_advance(service, TW_NO_LIMIT), 0);
	}
	uint64_t took_ticks = (tw_service_now(service) - begun_ns) / MS + 2;
	expect_eq(tw_service_stats(service, &stats), 0);
	expect_le(stats.ticks, took_ticks);
	expect_eq(tw_service_destroy(service), 0);
}

/* ------------------------------------------------------------ many calls a tick */

/* What is due later may wait in a lane until the next tick, but not until the lane is full. */
Test(driver_real_loop, a_driver_that_is_called_often_keeps_short_lanes_from_filling)
{
	struct tw_service_config cfg = {.size = sizeof(cfg),
					.drive = TW_DRIVE_MANUAL,
					.executor = tw_executor_inline(),
					.tick_ns = TW_SECOND,
					.lane_entries = 1024};
	tw_service *service;
	expect_eq(tw_service_create(&service, &cfg), 0);
	for (int i = 0; i < 20000; i++) {
		expect_eq(tw_schedule(service, 600 * TW_SECOND, nothing, NULL, NULL), 0);
		expect_eq(tw_service_advance(service, TW_NO_LIMIT), 0);
	}
	expect_eq(tw_service_destroy(service), 0);
}
