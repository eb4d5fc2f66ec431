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

tw_timer tw_self(void)
{
	struct tw__run *run = tw__current_run;
	bool known = run && run->slot && !tw__forked(run->service);
	return known ? tw__handle_make(&run->service->slots, run->slot, run->generation) : (tw_timer){0};
}

/* A run of a strand's series has no service: none of its timers runs. */
static bool is_inherited(const struct tw__run *run)
{
	return run->service && tw__forked(run->service);
}

uint64_t tw_overruns(void)
{
	struct tw__run *run = tw__current_run;
	return run && !is_inherited(run) ? run->overruns : 0;
}

bool tw_late(void)
{
	struct tw__run *run = tw__current_run;
	return run && !is_inherited(run) && run->late;
}

bool tw_closing(void)
{
	struct tw__run *run = tw__current_run;
	return run && !is_inherited(run) && run->closing;
}

bool tw__clock_in_callback(const tw_clock *clock)
{
	for (struct tw__run *run = tw__current_run; run; run = run->outer)
		if (run->service && run->service->clock == clock)
			return true;
	return false;
}
