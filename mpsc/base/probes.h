/*
 * Static probes for tracers (USDT), which see them as tickwheel:NAME. Each is a nop until a tracer
 * arms it. Built in where the compiler finds sys/sdt.h (Debian: systemtap-sdt-dev) unless PROBES=0
 * is given to make. docs/tracing.md has recipes.
 *
 *   probe      arguments                                       on which thread, when
 *   arm        service, slot, generation, deadline_ns          the scheduling thread: published
 *   cancel     service, slot, generation, enum tw_outcome      the calling thread; tw_cancel_wait:
 *                                                              before it waits
 *   reset      service, slot, generation, deadline_ns, result  the calling thread
 *   file       service, slot, generation, tick                 the driver: from lane to wheel
 *   handover   service, batch, n, tick                         the driver, before it offers
 *                                                              the batch to an executor
 *   run        service, slot, generation, fn, late_ns          a worker, before it calls fn;
 *                                                              late_ns: since its tick was due
 *   done       service, slot, generation, run_ns               likewise: fn has returned
 *
 * Slot and generation together name a timer, as tw_service_dump lists it.
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
