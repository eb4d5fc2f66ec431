/*
 * Threads that end: what they scheduled stays, their lanes go to others, and their exit handlers
 * may still use the service.
 */
#include <errno.h>
#include <limits.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mpsc/base/process.h"
#include "test/support/rig.h"

TestSuite(service_thread_exits, .timeout = 60);

static void in_thread(void *(*main)(void *), void *arg)
{
	pthread_t thread;
	expect_eq(pthread_create(&thread, NULL, main, arg), 0);
	expect_eq(pthread_join(thread, NULL), 0);
}

/* ------------------------------------------------------------ entries left behind */

enum { EACH = 300 };

static void *schedule_and_end(void *arg)
{
	struct probe *probe = arg;
	for (int i = 0; i < EACH; i++)
		probe->answer |=
		    tw_schedule(probe->rig->service, MS, probe_run, probe, &probe->timer);
	return NULL;
}

Test(service_thread_exits, what_a_thread_left_undrained_is_drained)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	in_thread(schedule_and_end, &probe);
	expect_eq(probe.answer, 0);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	rig_advance(&rig, MS);
	expect_eq(probe.runs, EACH - 1);
	rig_close(&rig);
}

/*
 * Hundreds of threads, one after the other, need the memory of one; the next one's pushes come
 * behind the last one's.
 */
Test(service_thread_exits, lanes_and_slots_go_to_the_next_thread)
{
	struct rig rig;
	struct tw_service_config cfg = rig_config();
	cfg.max_timers = 4 * EACH; /* slots that a thread took with it would be missing */
	rig_open(&rig, &cfg);
	struct probe probe = PROBE(&rig, 1);
	uint64_t memory = 0;
	for (int i = 0; i < 200; i++) {
		in_thread(schedule_and_end, &probe);
		expect_eq(probe.answer, 0);
		if (i % 3 == 2)
			rig_advance(&rig, MS);
		if (i == 100) /* magazines, which grow on demand, are full */
			memory = stats_of(rig.service).memory_bytes;
	}
	rig_advance(&rig, MS);
	expect_eq(probe.runs, 200 * EACH);
	expect_eq(stats_of(rig.service).memory_bytes, memory);
	expect_eq(stats_of(rig.service).threads, 1);
	expect_sound(rig.service);
	rig_close(&rig);
}

struct two_threads {
	struct probe *probe;
	sem_t attached, go_on;
};

static void *attach_and_wait(void *arg)
{
	struct two_threads *two = arg;
	tw_schedule(two->probe->rig->service, MS, probe_run, two->probe, NULL);
	sem_post(&two->attached);
	while (sem_wait(&two->go_on) != 0)
		;
	return NULL;
}

Test(service_thread_exits, a_thread_may_outlive_the_service)
{
	for (int i = 0; i < 20; i++) {
		struct rig rig;
		rig_open(&rig, NULL);
		struct probe probe = PROBE(&rig, 1);
		struct two_threads two = {.probe = &probe};
		pthread_t thread;
		sem_init(&two.attached, 0, 0);
		sem_init(&two.go_on, 0, 0);
		expect_eq(pthread_create(&thread, NULL, attach_and_wait, &two), 0);
		while (sem_wait(&two.attached) != 0)
			;
		rig_close(&rig);
		struct rig next; /* perhaps where the first one was */
		rig_open(&next, NULL);
		sem_post(&two.go_on);
		pthread_join(thread, NULL);
		rig_close(&next);
	}
}

/* ------------------------------------------------------------ exit handlers */

static struct rig handler_rig;
static struct probe handler_probe;
static atomic_int handler_calls, handler_errors;
static pthread_key_t before_key, after_key; /* made before, and after, the library's own */

static void use_all(void)
{
	tw_service *service = handler_rig.service;
	tw_timer timer;
	bool fine = tw_schedule(service, SECOND, probe_run, &handler_probe, &timer) == 0 &&
		    tw_reset(service, timer, MS) == 0 && tw_is_pending(service, timer) &&
		    tw_cancel(service, timer) == TW_CANCELLED &&
		    tw_schedule(service, MS, probe_run, &handler_probe, &timer) == 0;
	handler_errors += !fine;
	handler_calls++;
}

/* Asks to be called again, as long as the system lets it. */
static void in_before(void *value)
{
	use_all();
	pthread_setspecific(before_key, value);
}

static void in_after(void *value)
{
	use_all();
	pthread_setspecific(after_key, value);
}

static void *end_with_handlers(void *arg)
{
	pthread_setspecific(before_key, arg);
	pthread_setspecific(after_key, arg);
	use_all();
	return NULL;
}

Test(service_thread_exits, handlers_that_run_before_and_after_the_librarys_may_schedule)
{
	expect_eq(pthread_key_create(&before_key, in_before), 0);
	rig_open(&handler_rig, NULL);
	handler_probe = PROBE(&handler_rig, 1);
	probe_schedule(&handler_probe, MS); /* makes the library's key */
	expect_eq(pthread_key_create(&after_key, in_after), 0);
	for (int i = 0; i < 50; i++)
		in_thread(end_with_handlers, &i);
	expect_eq(handler_errors, 0);
	expect_ge(handler_calls, 50 * 3);
	rig_advance(&handler_rig, MS);
	expect_eq(handler_probe.runs, handler_calls + 1);
	expect_sound(handler_rig.service);
	rig_close(&handler_rig);
}

/* In the pool the handlers run when the service closes: they are refused, and nothing hangs. */
static int handler_answer;

static void schedule_late(void *service)
{
	handler_answer = tw_schedule(service, 0, probe_run, &handler_probe, NULL);
	handler_calls++;
}

static void set_handler(void *arg)
{
	pthread_setspecific(after_key, arg);
}

Test(service_thread_exits, handlers_of_workers_are_refused)
{
	tw_service *service;
	struct tw_service_config cfg = {.size = sizeof(cfg), .workers = 1};
	expect_eq(tw_service_create(&service, &cfg), 0);
	expect_eq(pthread_key_create(&after_key, schedule_late), 0);
	expect_eq(tw_schedule(service, 0, set_handler, service, NULL), 0);
	expect_eq(tw_service_close(service, TW_CLOSE_RUN, TW_FOREVER), 0);
	expect_eq(handler_calls, 1);
	expect_eq(handler_answer, -ESHUTDOWN);
	expect_eq(tw_service_destroy(service), 0);
}

/* --------------------------------------------- a thread that ends while the process does */

static pthread_t late;
static atomic_int late_id, may_end;

static void *use_and_end(void *arg)
{
	probe_schedule(arg, MS);
	atomic_store(&late_id, gettid());
	while (!atomic_load(&may_end))
		sched_yield();
	return NULL;
}

/* It waits for the registry's lock, in the handler of the library's key. */
static bool late_waits(void)
{
	char name[64], state = 0;
	snprintf(name, sizeof name, "/proc/self/task/%d/stat", atomic_load(&late_id));
	FILE *file = fopen(name, "r");
	if (file && fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	if (file)
		fclose(file);
	return state == 'S';
}

static void unlock_registry(void)
{
	pthread_mutex_unlock(&tw__registry);
}

static void join_late(void)
{
	pthread_join(late, NULL);
}

/* Exit handlers run in the reverse order: unlock_registry, the library's, join_late. */
static void exit_beside_it(void)
{
	struct rig rig;
	struct probe probe;
	atexit(join_late);
	rig_open(&rig, NULL);
	atexit(unlock_registry);
	probe = PROBE(&rig, 1);
	pthread_create(&late, NULL, use_and_end, &probe);
	while (!atomic_load(&late_id))
		sched_yield();
	rig_close(&rig);
	pthread_mutex_lock(&tw__registry);
	atomic_store(&may_end, 1);
	while (!late_waits())
		sched_yield();
	exit(0);
}

Test(service_thread_exits, a_thread_may_end_while_the_process_does)
{
	int status = 0;
	pid_t child = fork(); /* before the library is used: the child is no forked child to it */
	if (child == 0)
		exit_beside_it();
	expect_eq(waitpid(child, &status, 0), child);
	expect_eq(status, 0);
}
