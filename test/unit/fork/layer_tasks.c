/*
 * User code of each kind forks, on real threads. Its child is refused and calls _exit. The parent
 * notices nothing. test/contract has the answers of all calls in a child.
 */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "test/support/child.h"
#include "test/support/shot.h"
#include "test/support/user_code.h"

TestSuite(fork_layer_tasks, .timeout = 60);

static tw_service *service;
static _Atomic pid_t child;
static atomic_int runs;

static void fork_here(void)
{
	runs++;
	pid_t forked = child_fork();
	if (forked == 0) {
		struct tw_service_stats stats = {.size = sizeof stats};
		child_eq(tw_service_stats(service, &stats), -EPERM);
		child_eq(tw_service_close(service, TW_CLOSE_DROP, 0), -EPERM);
		child_eq(tw_service_destroy(service), -EDEADLK);
		_exit(0);
	}
	child = forked;
}

static void fork_in_each(tw_executor *executor)
{
	struct tw_service_config cfg = {.size = sizeof cfg, .executor = executor};
	expect_eq(tw_service_create(&service, &cfg), 0);
	user_code_open(service, fork_here, NULL);
	for (int i = 0; i < 3 * USER_CODES; i++) {
		child = 0;
		runs = 0;
		user_codes[i % USER_CODES].begin();
		while (!child)
			sched_yield();
		expect_child_well(child);
		user_code_end();
		expect_eq(runs, 1);
	}
	close_service(service);
}

Test(fork_layer_tasks, in_a_pool_and_on_the_tick_thread)
{
	fork_in_each(NULL);
	fork_in_each(tw_executor_inline());
}
