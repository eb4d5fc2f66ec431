/* What is not inline: for the layers, and for a callback that is not shown. */
#include "wheel/core/user_code.h"
#include "wheel/core/frame.h"

void tw__user_hide_callback(const tw_service *service)
{
	struct tw__run *run = tw__current_run;
	if (!run || run->service != service)
		return;
	tw__user_end(run->shown);
	run->shown = NULL;
}

struct tw__run_record *tw__layer_begin(const void *owner, tw_fn *fn, void *arg, const char *name,
				       uint64_t since_ns)
{
	return tw__user_begin(owner, fn, arg, name, since_ns);
}

void tw__layer_end(struct tw__run_record *record)
{
	tw__user_end(record);
}
