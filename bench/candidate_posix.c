/*
 * POSIX timers: a timer_create for each connection, made once. The cheapest notification is used: a
 * realtime signal to one thread (SIGEV_THREAD_ID). That thread runs no handler and reads the
 * signals from a signalfd, up to 64 at a time. SIGEV_THREAD would start a thread for each expiry.
 * Arming is one timer_settime with an absolute time, disarming another; any thread may call.
 *
 * A signal that is queued already is not taken back for sure. So each timer has its deadline beside
 * it, 0 if it is not pending: who takes it away by exchange decides, and an expiry that finds a
 * later one there has been overtaken by a move. The number of timers is limited by that of signals
 * that may be queued (RLIMIT_SIGPENDING).
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "bench/measure.h"
#include "bench/candidate.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { SIGNALS = 64, OTHER_SIGNALS = 1024 };

struct timer {
	_Atomic uint64_t deadline_ns; /* of a series: of its first run */
	expiry_fn *fn;
	void *arg;
	timer_t id;
	bool series;
};

struct kernel_timers {
	int signals; /* read by the thread; one without a timer ends it */
	pid_t thread_id;
	sem_t started;
	uint32_t slots;
	struct timer *timers;
	_Atomic uint64_t wakeups;
	pthread_t thread;
};

static _Thread_local uint64_t runs_missed;

static uint64_t missed(void)
{
	return runs_missed;
}

static uint32_t most_slots(void)
{
	struct rlimit limit;
	const rlim_t most = 20000000;
	if (getrlimit(RLIMIT_SIGPENDING, &limit) < 0)
		return 0;
	struct rlimit wanted = {.rlim_cur = most,
				.rlim_max = most > limit.rlim_max ? most : limit.rlim_max};
	if (setrlimit(RLIMIT_SIGPENDING, &wanted) == 0)
		return (uint32_t)most;
	rlim_t got = limit.rlim_max < most ? limit.rlim_max : most;
	wanted = (struct rlimit){.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
	setrlimit(RLIMIT_SIGPENDING, &wanted);
	return got > OTHER_SIGNALS ? (uint32_t)got - OTHER_SIGNALS : 0;
}

static void expire(struct timer *timer, uint32_t overrun)
{
	uint64_t deadline_ns = atomic_load(&timer->deadline_ns);
	if (deadline_ns == 0 || now_ns() < deadline_ns)
		return;
	expiry_fn *fn = timer->fn;
	void *arg = timer->arg;
	runs_missed = overrun;
	if (timer->series || atomic_compare_exchange_strong(&timer->deadline_ns, &deadline_ns, 0))
		fn(arg);
}

static void *timer_thread(void *me)
{
	struct kernel_timers *self = me;
	struct signalfd_siginfo infos[SIGNALS];
	self->thread_id = gettid();
	sem_post(&self->started);
	for (;;) {
		ssize_t bytes = read(self->signals, infos, sizeof infos);
		atomic_store_explicit(&self->wakeups, self->wakeups + 1, memory_order_relaxed);
		for (ssize_t i = 0; i < bytes / (ssize_t)sizeof *infos; i++) {
			if (!infos[i].ssi_ptr)
				return NULL;
			expire((struct timer *)(uintptr_t)infos[i].ssi_ptr, infos[i].ssi_overrun);
		}
	}
}

static int create_timer(struct kernel_timers *self, struct timer *timer)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
	event.sigev_value.sival_ptr = timer;
	event.sigev_notify_thread_id = self->thread_id;
	return timer_create(CLOCK_MONOTONIC, &event, &timer->id);
}

/*
 * Blocked in this thread and in those that it makes. What a create that failed has made ends with
 * the process.
 */
static void *create(const struct candidate_setup *setup)
{
	struct kernel_timers *self = touched_array(1, sizeof *self);
	if (!self || most_slots() < setup->slots)
		return NULL;
	sigset_t mask;
	sigemptyset(&mask);
	sigaddset(&mask, SIGRTMIN);
	pthread_sigmask(SIG_BLOCK, &mask, NULL);
	self->slots = setup->slots;
	self->timers = touched_array(setup->slots, sizeof *self->timers);
	self->signals = signalfd(-1, &mask, SFD_CLOEXEC);
	sem_init(&self->started, 0, 0);
	if (!self->timers || self->signals < 0 ||
	    pthread_create(&self->thread, NULL, timer_thread, self))
		return NULL;
	sem_wait(&self->started);
	for (uint32_t slot = 0; slot < setup->slots; slot++)
		if (create_timer(self, &self->timers[slot]))
			return NULL;
	return self;
}

static void destroy(void *me)
{
	struct kernel_timers *self = me;
	for (uint32_t slot = 0; slot < self->slots; slot++)
		timer_delete(self->timers[slot].id);
	if (pthread_sigqueue(self->thread, SIGRTMIN, (union sigval){.sival_ptr = NULL}))
		abort();
	pthread_join(self->thread, NULL);
	sem_destroy(&self->started);
	close(self->signals);
	free(self->timers);
	free(self);
}

#include "bench/kernel_timers.h"

static int set(const struct timer *timer, uint64_t deadline_ns, uint64_t period_ns)
{
	struct itimerspec spec = {.it_value = timespec_of(deadline_ns),
				  .it_interval = timespec_of(period_ns)};
	return timer_settime(timer->id, TIMER_ABSTIME, &spec, NULL) ? -errno : 0;
}

const struct candidate candidate_posix = {
    .name = "timer_create",
    .what = "a POSIX timer for each timer, signalfd, a thread that runs what is due",
    .peer = true,
    .workloads = ON_ALL,
    .spared = ON_IDLE | ON_STORM,
    .most_slots = most_slots,
    .create = create,
    .destroy = destroy,
    .schedule = schedule,
    .every = every,
    .missed = missed,
    .cancel = cancel,
    .touch = touch,
    .view = view,
};
