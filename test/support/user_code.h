/*
 * Each kind of user code that a service and its layers call: a timer's callback, a release, a job.
 * A test begins one, and its function calls what the test wants to be called there.
 */
#ifndef TEST_SUPPORT_USER_CODE_H
#define TEST_SUPPORT_USER_CODE_H

#include "rig.h"

struct user_code {
	void (*begin)(void); /* it is due within 2 ms */
	tw_fn *fn;           /* as tw_service_liveness shows it; its arg is the service */
	const char *name;
};

enum { USER_CODES = 14 };
extern const struct user_code user_codes[USER_CODES];

/*
 * Those that follow are of this service, and call `inside`. While an end waits, it calls `idle`, or
 * sleeps if that is NULL.
 */
void user_code_open(tw_service *service, void (*inside)(void), void (*idle)(void));

/* Ends what one of them has made, when its function has returned, perhaps a moment ago. */
void user_code_end(void);

#endif
