/*
 * clocks MODE: the service on the real clocks, where the system's clocks are not what they usually
 * are (test/system/clocks.sh runs each mode).
 *
 *     clocks offset MONOTONIC BOOTTIME  in a time namespace (man time_namespaces) whose clocks
 *                                       differ by that many seconds
 *     clocks early                      in one whose clocks began a second ago
 *     clocks leap                       a process driven by hand, whose clocks leap ahead by a day
 *                                       and by a century, as on a machine that was stopped
 *     clocks realtime FILE              under libfaketime, whose FILE moves the time of day
 *                                       back and forth by years meanwhile
 *
 * Whatever they say: no timer is early, by a clock that is read past the library; none is slept
 * through; each ends once. Status 77: the system does not allow it here, and nothing was tested.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test/support/random.h"
#include "tickwheel.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

enum { SHOTS = 2000, LEFT_OUT = 77, WATCHDOG_S = 60 };
#define DAY_S INT64_C(86400)
#define YEAR_S (365 * DAY_S)
#define LONGEST_NS (200 * TW_MILLISECOND)

static const char *mode = "clocks";

static void fail(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fprintf(stderr, "clocks: %s: FAILED: ", mode);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	_exit(1);
}
#define check(condition, ...) ((condition) ? (void)0 : fail(__VA_ARGS__))

static int left_out(const char *why)
{
	printf("clocks: %s: left out: %s: %s\n", mode, why, strerror(errno));
	return LEFT_OUT;
}

/*
 * Of the kernel itself: neither the library's reading, nor one that a preloaded library stands
 * before.
 */
static uint64_t kernel_ns(clockid_t id)
{
	struct timespec now;
	syscall(SYS_clock_gettime, id, &now);
	return (uint64_t)now.tv_sec * TW_SECOND + (uint64_t)now.tv_nsec;
}

/* ------------------------------------------------------------------ the work */

struct shot {
	tw_timer timer;
	uint64_t armed_ns, delay_ns; /* armed: read before the call */
	atomic_int runs, early;
};

static struct {
	tw_service *service;
	clockid_t id;
	struct shot shots[SHOTS];
	sem_t done;
	atomic_int beats;
} work;

static void on_shot(void *arg)
{
	struct shot *shot = arg;
	if (kernel_ns(work.id) - shot->armed_ns < shot->delay_ns)
		shot->early++;
	shot->runs++;
	sem_post(&work.done);
}

static void on_beat(void *arg)
{
	(void)arg;
	work.beats++;
}

static void arm(struct shot *shot, uint64_t delay_ns)
{
	*shot = (struct shot){.delay_ns = delay_ns, .armed_ns = kernel_ns(work.id)};
	check(tw_schedule(work.service, delay_ns, on_shot, shot, &shot->timer) == 0,
	      "a schedule was refused");
}

/*
 * Arms a timer by moving it from a later or an earlier deadline. The shot is complete before the
 * callback can run.
 */
static void arm_by_reset(struct shot *shot, uint64_t first_ns, uint64_t delay_ns)
{
	arm(shot, first_ns);
	shot->delay_ns = delay_ns;
	shot->armed_ns = kernel_ns(work.id);
	check(tw_reset(work.service, shot->timer, delay_ns) == 0, "a reset was refused");
}

static void await(unsigned n)
{
	for (uint64_t until = kernel_ns(CLOCK_MONOTONIC) + WATCHDOG_S * TW_SECOND; n > 0;) {
		if (sem_trywait(&work.done) == 0) {
			n--;
			continue;
		}
		check(kernel_ns(CLOCK_MONOTONIC) < until, "%u timers were slept through", n);
		sched_yield();
		syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = 500000}, NULL);
	}
}

static void check_shots(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		check(work.shots[i].runs == 1, "timer %u ran %d times", i, work.shots[i].runs);
		check(work.shots[i].early == 0, "timer %u came early", i);
	}
}

static void open_service(tw_clock *clock, enum tw_drive drive)
{
	struct tw_service_config config = {
	    .size = sizeof config, .clock = clock, .drive = drive, .workers = 2};
	if (drive == TW_DRIVE_MANUAL) {
		config.workers = 0;
		config.executor = tw_executor_inline();
	}
	work.id = clock == tw_clock_boottime() ? CLOCK_BOOTTIME : CLOCK_MONOTONIC;
	work.beats = 0;
	sem_init(&work.done, 0, 0);
	int r = tw_service_create(&work.service, &config);
	check(r == 0, "no service: %d", r);
}

static void end_service(void)
{
	char why[128] = "";
	check(tw_service_close(work.service, TW_CLOSE_DROP, TW_FOREVER) == 0, "close");
	check(tw_service_validate(work.service, why, sizeof why) == 0, "%s", why);
	check(tw_service_destroy(work.service) == 0, "destroy");
}

/*
 * Timers of all kinds, each from its own instant; some from rest, so that the tick thread sleeps in
 * between.
 */
static void use(tw_clock *clock)
{
	uint64_t seed = 1;
	struct tw_period beat = {.size = sizeof beat,
				 .period_ns = 5 * TW_MILLISECOND,
				 .first_ns = TW_MILLISECOND,
				 .missed = TW_MISSED_BURST};
	tw_timer distant, series;
	open_service(clock, TW_DRIVE_THREAD);
	check(tw_schedule(work.service, TW_MAX_DELAY_NS, on_beat, NULL, &distant) == 0,
	      "the longest delay");
	uint64_t begun_ns = kernel_ns(work.id);
	check(tw_schedule_every(work.service, &beat, on_beat, NULL, &series) == 0, "a series");
	for (unsigned i = 0; i < SHOTS; i++) {
		struct shot *shot = &work.shots[i];
		uint64_t delay_ns = random_below(&seed, LONGEST_NS);
		if (i % 8 == 0)
			arm_by_reset(shot, 3600 * TW_SECOND, delay_ns);
		else if (i % 8 == 1)
			arm_by_reset(shot, LONGEST_NS, LONGEST_NS + delay_ns);
		else
			arm(shot, delay_ns);
	}
	await(SHOTS);
	check_shots(SHOTS);
	uint64_t left_ns = 0, passed_ns = kernel_ns(work.id) - begun_ns;
	int beats = work.beats;
	check((uint64_t)beats <= passed_ns / beat.period_ns + 1, "%d beats in %llu ns", beats,
	      (unsigned long long)passed_ns);
	check(tw_cancel_wait(work.service, series, TW_FOREVER) >= 0 && work.beats > 0,
	      "the series did not run");
	check(tw_remaining(work.service, distant, &left_ns) == 0 && left_ns > TW_MAX_DELAY_NS / 2,
	      "the longest delay is short");
	for (unsigned i = 0; i < 20; i++) {
		arm(&work.shots[0], i * 3 * TW_MILLISECOND);
		await(1);
		check_shots(1);
	}
	end_service();
}

static int in_child(void (*body)(const char *arg), const char *arg)
{
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		alarm(3 * WATCHDOG_S);
		body(arg);
		fflush(NULL);
		_exit(0);
	}
	int status = 0;
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* -------------------------------------------------------------- namespaces */

/* For children, and for whoever enters it. False: not allowed; errno says why. */
static bool new_namespace(int64_t monotonic_s, int64_t boottime_s)
{
	if (unshare(CLONE_NEWTIME) != 0)
		return false;
	FILE *offsets = fopen("/proc/self/timens_offsets", "w");
	if (!offsets)
		return false;
	fprintf(offsets, "monotonic %lld 0\nboottime %lld 0\n", (long long)monotonic_s,
		(long long)boottime_s);
	return fclose(offsets) == 0;
}

static void use_both(const char *arg)
{
	(void)arg;
	use(tw_clock_monotonic());
	use(tw_clock_boottime());
}

static int64_t seconds_of(clockid_t id)
{
	return (int64_t)(kernel_ns(id) / TW_SECOND);
}

static int offset(int64_t monotonic_s, int64_t boottime_s)
{
	if (!new_namespace(monotonic_s, boottime_s))
		return left_out("a time namespace");
	int failed = in_child(use_both, NULL);
	if (!failed)
		printf("clocks: %s: ok, monotonic clock off by %lld s, boottime by %lld s\n", mode,
		       (long long)monotonic_s, (long long)boottime_s);
	return failed;
}

static void move_to(int64_t seconds)
{
	int64_t before_s = seconds_of(CLOCK_MONOTONIC);
	bool made = new_namespace(seconds, seconds);
	int at = made ? open("/proc/self/ns/time_for_children", O_RDONLY | O_CLOEXEC) : -1;
	if (at < 0 || setns(at, CLONE_NEWTIME) != 0)
		exit(left_out("entering a time namespace"));
	close(at);
	check(llabs(seconds_of(CLOCK_MONOTONIC) - before_s - seconds) < WATCHDOG_S ||
		  seconds > DAY_S,
	      "the clock has not leapt");
}

/*
 * One thread only, because the kernel lets no others move. A timer within the leap is due
 * immediately, and no timer is due behind it.
 */
static void leap(const char *arg)
{
	(void)arg;
	static const uint64_t delays_s[] = {
	    1, 3600, 86399, 86400 + 3600, 90 * 365 * (uint64_t)86400, 140 * 365 * (uint64_t)86400};
	enum { DELAYS = sizeof delays_s / sizeof *delays_s };
	static const struct {
		int64_t offset_s;
		unsigned due;
	} leaps[] = {{0, 0}, {DAY_S, 3}, {100 * YEAR_S, 5}};
	open_service(tw_clock_monotonic(), TW_DRIVE_MANUAL);
	for (unsigned i = 0; i < DELAYS; i++)
		arm(&work.shots[i], delays_s[i] * TW_SECOND);
	for (unsigned l = 0; l < sizeof leaps / sizeof *leaps; l++) {
		if (leaps[l].offset_s)
			move_to(leaps[l].offset_s);
		check(tw_service_advance(work.service, TW_NO_LIMIT) >= 0, "advance");
		for (unsigned i = 0; i < DELAYS; i++)
			check(work.shots[i].runs == (i < leaps[l].due) && !work.shots[i].early,
			      "after a leap by %lld s: timer %u ran %d times",
			      (long long)leaps[l].offset_s, i, work.shots[i].runs);
		uint64_t left_ns, now_ns = kernel_ns(CLOCK_MONOTONIC);
		struct shot *last = &work.shots[DELAYS - 1];
		check(tw_remaining(work.service, last->timer, &left_ns) == 0 &&
			  left_ns + now_ns + TW_SECOND > last->armed_ns + last->delay_ns,
		      "what remains is too short after a leap");
	}
	check(tw_cancel(work.service, work.shots[DELAYS - 1].timer) == TW_CANCELLED,
	      "a cancel after a leap");
	end_service();
}

/* ------------------------------------------------------------- time of day */

static atomic_bool stop_stepping;
static atomic_int steps_seen;

/* libfaketime reads its file anew for each reading (FAKETIME_NO_CACHE). */
static void *step(void *path)
{
	static const char *const offsets[] = {"+3y", "-20y", "+0", "+40d", "-1d", "+1h"};
	time_t last = time(NULL);
	for (unsigned i = 0; !stop_stepping; i++) {
		FILE *file = fopen(path, "w");
		if (!file)
			fail("the file of steps");
		fprintf(file, "%s\n", offsets[i % 6]);
		fclose(file);
		syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = 7000000}, NULL);
		time_t now = time(NULL);
		steps_seen += llabs((long long)(now - last)) > 1000;
		last = now;
	}
	return NULL;
}

static int realtime(const char *path)
{
	pthread_t stepper;
	check(pthread_create(&stepper, NULL, step, (void *)(uintptr_t)path) == 0, "a thread");
	for (int i = 0; i < 3;
	     /*
	      * not on the boottime clock: libfaketime moves the instants of its timer descriptors,
	      * too
	      */
	     i++)
		use(tw_clock_monotonic());
	stop_stepping = true;
	pthread_join(stepper, NULL);
	check(steps_seen > 5, "the time of day did not step: is libfaketime there?");
	printf("clocks: %s: ok, the time of day stepped %d times, by an hour to 23 years\n", mode,
	       steps_seen);
	return 0;
}

int main(int argc, char **argv)
{
	mode = argc > 1 ? argv[1] : "";
	if (argc == 4 && !strcmp(mode, "offset"))
		return offset(atoll(argv[2]), atoll(argv[3]));
	if (argc == 2 && !strcmp(mode, "early"))
		return offset(1 - seconds_of(CLOCK_MONOTONIC), 1 - seconds_of(CLOCK_BOOTTIME));
	if (argc == 3 && !strcmp(mode, "realtime"))
		return realtime(argv[2]);
	if (argc == 2 && !strcmp(mode, "leap")) {
		int failed = in_child(leap, NULL);
		if (!failed)
			printf("clocks: leap: ok, by a day, then by a century\n");
		return failed;
	}
	fprintf(stderr, "usage: clocks offset MONOTONIC BOOTTIME | early | leap | realtime FILE\n");
	return 2;
}
