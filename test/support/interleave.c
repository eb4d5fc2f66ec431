#include "test/support/interleave.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "test/support/expect.h"
#include "test/support/threads.h"

struct other {
	void (*call)(void *arg);
	void *arg;
	sem_t begin, done;
	pthread_t thread;
	atomic_long id; /* 0: it has not begun */
};

static void *other_main(void *arg)
{
	struct other *other = arg;
	atomic_store(&other->id, syscall(SYS_gettid));
	while (sem_wait(&other->begin) == -1)
		;
	other->call(other->arg);
	sem_post(&other->done);
	return NULL;
}

static void other_open(struct other *other)
{
	sem_init(&other->begin, 0, 0);
	sem_init(&other->done, 0, 0);
	expect_eq(pthread_create(&other->thread, NULL, other_main, other), 0);
}

static void other_close(struct other *other)
{
	pthread_join(other->thread, NULL);
	sem_destroy(&other->begin);
	sem_destroy(&other->done);
}

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(COVERAGE)

#include <signal.h>
#include <stddef.h>
#include <ucontext.h>

enum { TRAP_FLAG = 0x100, PATIENCE_NS = 20000000, SPIN_NS = 10000000 };

static struct {
	struct other *other;
	unsigned points, nth;
	bool in_locked; /* the instruction that has been executed is a locked one */
} stepping;

/* A lock prefix, or an exchange with memory. */
static bool is_locked(const uint8_t *code)
{
	for (;; code++) {
		if (*code == 0xf0)
			return true;
		bool is_prefix = *code == 0x66 || *code == 0xf2 || *code == 0xf3 || *code == 0x2e ||
				 *code == 0x64 || *code == 0x65;
		if (!is_prefix)
			break;
	}
	if ((*code & 0xf0) == 0x40)
		code++; /* REX */
	return (code[0] == 0x86 || code[0] == 0x87) && code[1] < 0xc0;
}

static uint64_t cpu_ns(pthread_t thread)
{
	clockid_t clock;
	struct timespec used = {0};
	if (pthread_getcpuclockid(thread, &clock) == 0)
		clock_gettime(clock, &used);
	return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

/* It lacks a processor. One that waits for a lock sleeps, or spins for long. */
static bool is_starved(struct other *other, uint64_t cpu_before_ns)
{
	long id = atomic_load(&other->id);
	return id == 0 ||
	       (thread_is_runnable(id) && cpu_ns(other->thread) - cpu_before_ns < SPIN_NS);
}

static bool has_returned(struct other *other)
{
	struct timespec until;
	int r;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += PATIENCE_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	while ((r = sem_timedwait(&other->done, &until)) == -1 && errno == EINTR)
		;
	return r == 0;
}

/* The other call returns, or waits for this thread: then it will not return in time. */
static void let_other(struct other *other)
{
	uint64_t cpu_before_ns = cpu_ns(other->thread);
	sem_post(&other->begin);
	while (!has_returned(other) && is_starved(other, cpu_before_ns))
		;
}

static void stop(ucontext_t *context)
{
	context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
	let_other(stepping.other);
}

/* Before the instruction that is next. */
static void step(int signal, siginfo_t *info, void *of)
{
	ucontext_t *context = of;
	bool was_locked = stepping.in_locked;
	stepping.in_locked = is_locked((const uint8_t *)context->uc_mcontext.gregs[REG_RIP]);
	if (!was_locked && !stepping.in_locked)
		return;
	stepping.points++;
	if (stepping.points == stepping.nth)
		stop(context);
}

/* Below the red zone. */
static inline void trap_flag(uint64_t set)
{
	__asm__ volatile("lea -128(%%rsp), %%rsp\n\t"
			 "pushfq\n\t"
			 "andq $~0x100, (%%rsp)\n\t"
			 "orq %0, (%%rsp)\n\t"
			 "popfq\n\t"
			 "lea 128(%%rsp), %%rsp"
			 :
			 : "r"(set)
			 : "cc", "memory");
}

bool interleave(unsigned nth, void (*call)(void *arg), void *arg, void (*other_call)(void *arg),
		void *other_arg)
{
	struct other other = {.call = other_call, .arg = other_arg};
	struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO}, before;
	other_open(&other);
	stepping.other = &other;
	stepping.points = 0;
	stepping.nth = nth;
	stepping.in_locked = false;
	sigaction(SIGTRAP, &action, &before);
	trap_flag(TRAP_FLAG);
	call(arg);
	trap_flag(0);
	sigaction(SIGTRAP, &before, NULL);
	bool stopped = stepping.points >= nth;
	if (!stopped)
		sem_post(&other.begin);
	other_close(&other);
	return stopped;
}

#else

enum { TRIES = 200 };

bool interleave(unsigned nth, void (*call)(void *arg), void *arg, void (*other_call)(void *arg),
		void *other_arg)
{
	struct other other = {.call = other_call, .arg = other_arg};
	other_open(&other);
	sem_post(&other.begin);
	for (volatile unsigned wait = 0; wait < nth * 50; wait++)
		;
	call(arg);
	other_close(&other);
	return nth < TRIES;
}

#endif
