/*
 * The layers: what is built on a service and its executors. The rules of tickwheel.h hold for them,
 * too.
 *
 *     strand.h       runs tasks one after the other
 *     scheduler.h    runs tasks by priority, in slices
 *     action.h       work that arms itself again
 *     semaphore.h    permits, for threads and functions
 *     limiter.h      jobs, at most n at a time, with retries and timeouts
 *     sim.h          plays a service on a virtual clock, from a seed
 *     prometheus.h   the figures of a service as a page of text
 *
 * They are a library of their own, which needs libtickwheel:
 *
 *     cc server.c $(pkg-config --cflags --libs tickwheel-layers)
 */
#ifndef TICKWHEEL_LAYERS_H
#define TICKWHEEL_LAYERS_H

#include "../tickwheel.h"
#include "action.h"
#include "job.h"
#include "limiter.h"
#include "prometheus.h"
#include "scheduler.h"
#include "semaphore.h"
#include "sim.h"
#include "strand.h"

#endif
