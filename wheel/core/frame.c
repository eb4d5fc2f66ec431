/* What the calling thread runs: a stack of frames, the innermost first. */
#include "wheel/core/frame.h"

_Thread_local struct tw__run *tw__current_run;

bool tw__inside(const tw_service *service)
{
	for (struct tw__run *run = tw__current_run; run; run = run->outer)
		if (run->service == service)
			return true;
	return false;
}

/* What the thread runs, or NULL; in a forked child NULL. A run of a strand's series has no service. */
static const struct tw__run *current(void)
{
	const struct tw__run *run = tw__current_run;
	return run && run->service && tw__forked(run->service) ? NULL : run;
}

tw_timer tw_self(void)
{
	const struct tw__run *run = current();
	return run && run->slot ? tw__handle_make(&run->service->slots, run->slot, run->generation) : (tw_timer){0};
}

uint64_t tw_overruns(void)
{
	const struct tw__run *run = current();
	return run ? run->overruns : 0;
}

bool tw_late(void)
{
	const struct tw__run *run = current();
	return run && run->late;
}

bool tw_closing(void)
{
	const struct tw__run *run = current();
	return run && run->closing;
}

bool tw__clock_in_callback(const tw_clock *clock)
{
	for (struct tw__run *run = tw__current_run; run; run = run->outer)
		if (run->service && run->service->clock == clock)
			return true;
	return false;
}
