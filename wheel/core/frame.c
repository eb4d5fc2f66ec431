/* What the calling thread runs: a stack of frames, the innermost first. */
#include <stddef.h>

#include "mpsc/base/entry.h"
#include "wheel/core/frame.h"

_Thread_local struct tw__run *tw__current_run;

bool tw__is_within(const void *what)
{
	const struct tw__run *run = tw__current_run;
	while (run && run->within != what)
		run = run->outer;
	return run;
}

bool tw__inside(const tw_service *service)
{
	for (struct tw__run *run = tw__current_run; run; run = run->outer)
		if (run->service == service)
			return true;
	return false;
}

/* What the thread runs, or NULL; in a forked child NULL. */
static const struct tw__run *current(void)
{
	const struct tw__run *run = tw__current_run;
	while (run && run->within && !run->hides)
		run = run->outer;
	bool none = !run || run->hides || (run->service && tw__forked(run->service));
	return none ? NULL : run;
}

tw_timer tw_self(void)
{
	const struct tw__run *run = current();
	return run && run->slot ? tw__handle_make(&run->service->slots, run->slot, run->generation)
				: (tw_timer){0};
}

int tw_current(struct tw_run_info *out)
{
	int r = TW__OUT_CHECK(tw_run_info, out, overruns);
	if (r)
		return r;
	const struct tw__run *run = current();
	struct tw_run_info info = {.timer = tw_self()};
	if (run) {
		info.overruns = run->overruns;
		info.late_ns = tw__span(run->due_ns, run->begun_ns);
		info.closing = run->closing;
	}
	tw__struct_write(out, &info, sizeof info);
	return run && (run->slot || !run->service); /* not in a completion or visitor */
}

bool tw__clock_in_callback(const tw_clock *clock)
{
	const struct tw__run *run = tw__current_run;
	while (run && run->drives != clock && (!run->service || run->service->clock != clock))
		run = run->outer;
	return run;
}

void *tw_context_get(void)
{
	return tw__thread.context;
}

void tw_context_set(void *context)
{
	tw__thread.context = context;
}

struct tw__run_record *tw__layer_begin(const void *owner, tw_fn *fn, void *arg, const char *name,
				       struct tw__run **frame)
{
	if (frame) {
		struct tw__run *former = tw__current_run;
		tw__current_run = *frame;
		*frame = former;
	}
	return tw__user_begin(owner, fn, arg, name, 0);
}
