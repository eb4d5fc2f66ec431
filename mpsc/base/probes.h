/*
 * Static probes for tracers (USDT), seen as tickwheel:NAME. Each is a nop until a tracer arms it.
 * Built in where the compiler finds sys/sdt.h, unless make gets PROBES=0. Recipes: docs/tracing.md.
 * Slot and generation name a timer, as in tw_service_dump.
 *
 *   probe      arguments                                       thread and moment
 *   arm        service, slot, generation, deadline_ns          the scheduling thread: published
 *   cancel     service, slot, generation, enum tw_outcome      the calling thread, before it waits
 *   reset      service, slot, generation, deadline_ns, result  the calling thread
 *   file       service, slot, generation, tick                 the driver: from lane to wheel
 *   handover   service, batch, n, tick                         the driver: is offered next
 *   run        service, slot, generation, fn, late_ns          a worker, before fn; since its tick
 *   done       service, slot, generation, run_ns               a worker: fn has returned
 */
#ifndef TW_MPSC_PROBES_H
#define TW_MPSC_PROBES_H

#ifdef TW_PROBES
#include <sys/sdt.h>
#define TW_PROBE3(name, a, b, c) DTRACE_PROBE3(tickwheel, name, a, b, c)
#define TW_PROBE4(name, a, b, c, d) DTRACE_PROBE4(tickwheel, name, a, b, c, d)
#define TW_PROBE5(name, a, b, c, d, e) DTRACE_PROBE5(tickwheel, name, a, b, c, d, e)
#else
/* Named, never evaluated. */
#define TW_PROBE3(name, a, b, c) TW_PROBE5(name, a, b, c, 0, 0)
#define TW_PROBE4(name, a, b, c, d) TW_PROBE5(name, a, b, c, d, 0)
#define TW_PROBE5(name, a, b, c, d, e) \
	do {                           \
		if (0) {               \
			(void)(a);     \
			(void)(b);     \
			(void)(c);     \
			(void)(d);     \
			(void)(e);     \
		}                      \
	} while (0)
#endif

#endif
