#include "test/support/child.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test/support/expect.h"
#include "test/support/threads.h"

enum { PATIENCE_S = 20 };

void child_compare(const char *what, long long is, long long wanted, const char *file, int line)
{
	if (is == wanted)
		return;
	dprintf(2, "%s:%d: in the child %s is %lld, not %lld\n", file, line, what, is, wanted);
	_exit(1);
}

/*
 * What the parent has registered for its own exit, a leak check among it, is no affair of a
 * child's.
 */
static void leave(int status, void *unused)
{
	_exit(status);
}

#ifdef __SANITIZE_ADDRESS__

static void end(void *unused)
{
	_exit(0);
}

/*
 * Gives the other threads time to fall asleep. AddressSanitizer of gcc 12 has no fork handler: a
 * lock that another thread holds in the moment of the fork, in its allocator or in its start, is
 * held in the child forever. A program without this library, which forks beside three threads that
 * start, lost 3 of 100 children so, and none of 1,200 after such a wait.
 */
static void let_others_sleep(void)
{
	const struct timespec moment = {.tv_nsec = 1000000};
	for (int tries = 0; tries < 100 && threads_runnable() > 1; tries++)
		nanosleep(&moment, NULL);
}

#endif

/*
 * If a fork inside the library made the child's only thread, the child ends successfully when that
 * thread ends. Under AddressSanitizer it ends a step earlier, before the thread's memory is freed.
 * The allocator of gcc 12's AddressSanitizer has no fork handler, so a thread that is not in the
 * child may hold its lock forever. Its destructor runs in the last round, so this destructor runs
 * first.
 */
static void end_with_the_thread(void)
{
#ifdef __SANITIZE_ADDRESS__
	static pthread_key_t key;
	if (pthread_key_create(&key, end) == 0)
		pthread_setspecific(key, &key);
#endif
}

pid_t child_fork(void)
{
#ifdef __SANITIZE_ADDRESS__
	let_others_sleep();
#endif
	pid_t child = fork();
	if (child == 0) {
		sigset_t none;
		sigemptyset(&none);
		pthread_sigmask(SIG_SETMASK, &none, NULL);
		signal(SIGALRM, SIG_DFL);
		alarm(PATIENCE_S);
		on_exit(leave, NULL);
		end_with_the_thread();
	}
	return child;
}

void expect_child_well(pid_t child)
{
	int status = -1;
	expect_gt(child, 0);
	pid_t ended;
	while ((ended = waitpid(child, &status, 0)) == -1)
		;
	expect_eq(ended, child);
	cr_assert(!WIFSIGNALED(status), "the child was killed by signal %d (%d: it hung)",
		  WTERMSIG(status), SIGALRM);
	expect_eq(WEXITSTATUS(status), 0);
}

void expect_in_child(void (*body)(void *arg), void *arg)
{
	pid_t child = child_fork();
	if (child == 0) {
		body(arg);
		_exit(0);
	}
	expect_child_well(child);
}
