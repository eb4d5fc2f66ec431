/*
 * The manual executor: a queue of runs that the caller pumps, on threads of its own choice.
 *
 * For a program that has a loop or threads already and wants callbacks there, and nowhere else: a GUI's main thread, a game's frame, a
 * plain poll loop. It takes whatever an executor takes: timers of any number of services, strands and the like.
 *
 *     tw_manual *queue;
 *     tw_manual_create(&queue, NULL);
 *     config.executor = tw_manual_executor(queue);
 *     ...
 *     tw_manual_pump(queue, TW_NO_LIMIT);   (in the loop, when tw_manual_fd is readable)
 *
 * Threads: any thread may call anything at any time, but destroy, which must be alone. Several threads may pump at once; each run is
 * claimed by one of them, in the order of handing over. In a forked child: -EPERM; destroy frees the memory.
 *
 * The end. A service waits in its close for what it has handed over, so somebody must pump meanwhile. Where closing and
 * pumping are one thread's: close with TW_CLOSE_FLAG_NO_WAIT, pump until nothing waits (what was dropped is passed over), destroy the
 * service, destroy the queue. What stands on the service comes first: strands and schedulers may be destroyed at once, a limiter is closed
 * with timeout 0, pumped for, and destroyed.
 */
#ifndef TICKWHEEL_MANUAL_H
#define TICKWHEEL_MANUAL_H

#include <stddef.h>
#include <stdint.h>

#include "executor.h"
#include "version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_manual tw_manual;

/*
 * Called on the submitting thread (a tick thread, for timers) when the first run has come into the
 * empty queue. It must not block, and must not call tw_manual_destroy. It is not called again for runs
 * that are left when a pump returns. A loop that waits for descriptors uses tw_manual_fd instead.
 */
typedef void tw_manual_notify_fn(void *notify_arg);

/* Zero means default for each knob. */
struct tw_manual_config {
	size_t size; /* sizeof(struct tw_manual_config); 0 only if all else is 0 too */
	uint32_t
	    queue; /* hand-overs that may wait, each of which may carry dozens of a service's runs; 1 .. 16 Mi; default 4096 */
	uint32_t reserved;           /* 0 */
	tw_manual_notify_fn *notify; /* may be NULL */
	void *notify_arg;
};

/*
 * Makes one; cfg may be NULL. *out is written on success only. -EINVAL: out NULL, a knob out of range. -E2BIG, as for services. -ENOMEM.
 */
TW_API int tw_manual_create(tw_manual **out, const struct tw_manual_config *cfg);

/*
 * The queue as an executor, of services (tw_service_config) or of single timers (tw_task). NULL if manual is. Where it is full it
 * refuses with -EAGAIN, and the service does as its on_refused says.
 */
TW_API tw_executor *tw_manual_executor(tw_manual *manual);

/*
 * A descriptor that is readable while runs wait. An event loop watches it beside its sockets, and
 * calls tw_manual_pump when it is readable:
 *
 *     struct epoll_event event = {.events = EPOLLIN, .data.ptr = queue};
 *     epoll_ctl(epoll_fd, EPOLL_CTL_ADD, tw_manual_fd(queue), &event);
 *     ...
 *     for each event of one epoll_wait:
 *             if (event.data.ptr == queue)
 *                     pump = true;
 *             else
 *                     handle the socket;
 *     if (pump)
 *             tw_manual_pump(queue, TW_NO_LIMIT);
 *
 * The sockets come first, and the pump last. A callback may free a connection whose
 * event comes later in the same batch.
 *
 * Watch it level-triggered, for reading. Never read, write or close it: it belongs to the queue, and
 * tw_manual_destroy closes it. The first call makes it (an eventfd, close-on-exec); later calls
 * return the same one. It costs a write when the queue stops being empty and a read when it becomes
 * empty, however many runs come between. Without a call of this function there is no such cost.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   >= 0      the descriptor
 *   -EINVAL   manual is NULL
 *   -EPERM    in a forked child
 *   -EMFILE, -ENFILE, -ENOMEM   the system has no descriptor or no memory; nothing has changed
 */
TW_API int tw_manual_fd(tw_manual *manual);

/*
 * Takes up to `budget` runs off the queue, in order, and carries them out on this thread; no more than waited at entry, so a callback that
 * brings new work does not hold it up. The number taken, also of those that had been cancelled meanwhile; 0: nothing waited.
 * What a strand has to do counts as one run, though it may be 64 tasks; so a slice of a scheduler.
 * Callbacks may pump, too.
 * -EINVAL: NULL. -ENOMEM: this thread could not be set up for the service of the first run, which goes back to it and comes again in a
 * tick or two. -EPERM.
 */
TW_API int tw_manual_pump(tw_manual *manual, size_t budget);

/* Runs that wait; a hint if others are at it. 0 if NULL, or in a forked child. */
TW_API size_t tw_manual_waiting(tw_manual *manual);

/*
 * Frees it, when all services that name it are closed. NULL is allowed. 0. -EBUSY: something waits, nothing has changed: pump first. In a
 * forked child: 0.
 */
TW_API int tw_manual_destroy(tw_manual *manual);

#ifdef __cplusplus
}
#endif
#endif
