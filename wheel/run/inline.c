/*
 * The inline executor. The driver recognizes it by its address and runs callbacks without a batch;
 * submit serves every other caller.
 */
#include "wheel/run/inline.h"

static int inline_submit(tw_executor *self, tw_batch *batch, size_t n)
{
	(void)self;
	while (n-- > 0)
		if (tw_run_one(batch) < 0)
			tw_run_return(batch);
	return 0;
}

static const struct tw_executor_ops inline_ops = {sizeof inline_ops, inline_submit};

tw_executor tw__inline_executor = {&inline_ops};

tw_executor *tw_executor_inline(void)
{
	return &tw__inline_executor;
}
