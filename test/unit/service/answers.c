/* Answers as texts, and what tw_current says. */
#include <errno.h>
#include <limits.h>

#include "test/support/current.h"
#include "test/support/rig.h"

static const char *const unknown = "not an answer of tickwheel";

Test(service_answers, each_outcome_and_error_has_a_text_of_its_own)
{
	static const int answers[] = {
	    TW_CANCELLED, TW_GONE,    TW_RUNNING, TW_FINISHED, TW_SELF,    -EINVAL,  -E2BIG,
	    -ENOMEM,      -EAGAIN,    -ERANGE,    -ESHUTDOWN,  -EBUSY,     -EDEADLK, -ETIMEDOUT,
	    -ENOENT,      -ECANCELED, -EALREADY,  -EPERM,      -EOVERFLOW, -EMFILE,  -ENFILE,
	    -ENOSPC,      -ENOTSUP,   -ELOOP,     -EFAULT,     -EIO};
	enum { COUNT = sizeof(answers) / sizeof(answers[0]) };
	for (size_t i = 0; i < COUNT; i++) {
		cr_assert_str_neq(tw_strerror(answers[i]), unknown);
		for (size_t j = 0; j < i; j++)
			cr_assert_str_neq(tw_strerror(answers[i]), tw_strerror(answers[j]));
	}
}

Test(service_answers, numbers_that_are_none)
{
	static const int others[] = {6, 1000, INT_MAX, -10000, INT_MIN, -EILSEQ};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		cr_assert_str_eq(tw_strerror(others[i]), unknown);
}

Test(service_answers, current_outside_of_callbacks)
{
	struct tw_run_info info = {
	    .size = sizeof(info), .timer = {7}, .overruns = 7, .late_ns = 7, .closing = true};
	expect_eq(tw_current(&info), 0);
	expect_eq(info.size, sizeof(info));
	expect_eq(info.timer.id, 0);
	expect_eq(info.overruns, 0);
	cr_assert(!info.late_ns && !info.closing);
}

static void describe(void *arg)
{
	struct tw_run_info *info = arg;
	info->size = sizeof(*info);
	if (tw_current(info) != 1)
		info->size = 0;
}

Test(service_answers, current_inside_of_a_callback)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct tw_run_info info = {0};
	tw_timer timer;
	expect_eq(tw_schedule(rig.service, MS, describe, &info, &timer), 0);
	rig_advance(&rig, 5 * MS);
	expect_eq(info.size, sizeof(info));
	expect_eq(info.timer.id, timer.id);
	rig_close(&rig);
}
