/* The misuse hook gets the reason for a refused call. */
#include <errno.h>
#include <string.h>

#include "test/support/expect.h"

TestSuite(service_misuse, .timeout = 60);

static char heard[256];

static void hear(const char *text)
{
	strncpy(heard, text, sizeof heard - 1);
}

static int create_with_too_many_workers(void)
{
	tw_pool *pool;
	return tw_pool_create(&pool, &(struct tw_pool_config){.size = sizeof(struct tw_pool_config),
							      .workers = 1025});
}

Test(service_misuse, names_the_call_the_value_and_the_range)
{
	tw_set_misuse_hook(hear);
	expect_eq(create_with_too_many_workers(), -EINVAL);
	cr_assert_str_eq(
	    heard,
	    "tw_pool_create: tw_pool_config.workers has a value that the header does not allow");
}

Test(service_misuse, is_silent_without_a_hook)
{
	tw_set_misuse_hook(hear);
	tw_set_misuse_hook(NULL);
	expect_eq(create_with_too_many_workers(), -EINVAL);
	cr_assert_str_eq(heard, "");
}

static void refuse_again(const char *text)
{
	tw_set_misuse_hook(NULL);
	create_with_too_many_workers();
	hear(text);
}

Test(service_misuse, the_hook_may_call_the_library)
{
	tw_set_misuse_hook(refuse_again);
	expect_eq(create_with_too_many_workers(), -EINVAL);
	cr_assert(strstr(heard, "tw_pool_config.workers"));
}
