/* Answers as texts. A static program that prints none does not link this file. */
#include <errno.h>

#include "tickwheel/misuse.h"
#include "tickwheel/service.h"

static const struct {
	int answer;
	const char *text;
} texts[] = {
    {TW_CANCELLED, "done; of a cancel: it will not run"},
    {TW_GONE, "gone: it has ended, or never was"},
    {TW_RUNNING, "its callback or its release is running"},
    {TW_FINISHED, "its callback was running and has returned"},
    {TW_SELF, "the caller is its own callback or release"},
    {TW_DISARMED, "disarmed already: it is not armed, and does not run"},
    {-EINVAL, "bad argument: tw_set_misuse_hook gets the reason"},
    {-E2BIG, "a struct has members that this version of the library does not know"},
    {-ENOMEM, "no memory"},
    {-EAGAIN, "no room now: a limit of the object is reached, or a thread cannot be started"},
    {-ERANGE, "a time is beyond TW_MAX_DELAY_NS"},
    {-ESHUTDOWN, "closed: it takes no new work"},
    {-EBUSY, "in use: others still need it, or it runs on another thread"},
    {-EDEADLK, "the call would wait for its own caller"},
    {-ETIMEDOUT, "the timeout has passed"},
    {-ENOENT, "no such timer or group: it has ended, or never was"},
    {-ECANCELED, "cancelled before"},
    {-EALREADY, "done before"},
    {-EPERM, "not permitted: a forked child, or a scheduling policy that the system refuses"},
    {-EOVERFLOW, "released more often than acquired"},
    {-EMFILE, "the process has no descriptor left"},
    {-ENFILE, "the system has no descriptor left"},
    {-ENOSPC, "the system has no room to watch another descriptor"},
    {-ENOTSUP, "the system does not support it"},
    {-ELOOP, "too many steps at one instant of a simulation"},
    {-EFAULT, "an invariant does not hold"},
    {-EIO, "writing has failed"},
};

const char *tw_strerror(int answer)
{
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		if (texts[i].answer == answer)
			return texts[i].text;
	return "not an answer of tickwheel";
}
