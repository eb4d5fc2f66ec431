/* What the calling thread runs, as a value. */
#ifndef TEST_SUPPORT_CURRENT_H
#define TEST_SUPPORT_CURRENT_H

#include <tickwheel.h>

static inline struct tw_run_info current_run(void)
{
	struct tw_run_info info = {.size = sizeof info};
	tw_current(&info);
	return info;
}

#endif
