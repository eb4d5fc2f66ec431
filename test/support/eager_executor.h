/* An executor that runs each ticket inside submit, as executor.h allows. */
#ifndef TEST_SUPPORT_EAGER_EXECUTOR_H
#define TEST_SUPPORT_EAGER_EXECUTOR_H

#include "tickwheel.h"

static int eager_submit(tw_executor *self, tw_batch *batch, size_t n)
{
	while (n-- > 0)
		tw_run_one(batch);
	return 0;
}

static const struct tw_executor_ops eager_ops = {sizeof eager_ops, eager_submit};
static tw_executor eager_executor = {&eager_ops};

#endif
