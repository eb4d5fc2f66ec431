/*
 * A process that has reached its limit of locked memory. The test runs in a child, so that the lock
 * ends with it.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "test/support/child.h"
#include "test/support/expect.h"

TestSuite(service_locked_memory, .timeout = 60);

enum { KIB = 1024 };

/* As an ordinary user, with that limit of locked memory, which counts from now on. */
static void lock_within(rlim_t bytes)
{
	struct rlimit limit = {.rlim_cur = bytes, .rlim_max = bytes};
	child_eq(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	if (geteuid() == 0)
		child_eq(setuid(65534), 0); /* root is not bound by the limit */
	child_eq(mlockall(MCL_FUTURE), 0);
}

static char heard[256];

static void hear(const char *text)
{
	strncpy(heard, text, sizeof heard - 1);
}

static void be_refused(void *arg)
{
	tw_service *service = NULL;
	tw_pool *pool = NULL;
	struct tw_pool_config small = {.size = sizeof small, .queue = 16};
	tw_set_misuse_hook(hear);
	lock_within(1024 * KIB); /* room for the pool's table, but not for its threads */
	child_eq(tw_service_create(&service, NULL), -EAGAIN);
	child_eq(service == NULL, true);
	child_eq(strstr(heard, "tw_service_create: the system refuses a thread") != NULL, true);
	child_eq(strstr(heard, "after mlockall, ulimit -l") != NULL, true);
	child_eq(tw_pool_create(&pool, &small), -EAGAIN);
	child_eq(strstr(heard, "tw_pool_create: ") != NULL, true);
	child_eq(munlockall(), 0);
	child_eq(tw_service_create(&service, NULL), 0);
	child_eq(tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER), 0);
	child_eq(tw_service_destroy(service), 0);
}

Test(service_locked_memory, is_refused_with_a_text_that_names_the_limit)
{
	expect_in_child(be_refused, NULL);
}
