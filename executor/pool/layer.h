/*
 * What strands, schedulers, limiters and the like stand on: a service for their timers, and an executor for their work (wheel/run/work.h).
 * A base keeps both from being closed.
 */
#ifndef TW_EXECUTOR_BASE_H
#define TW_EXECUTOR_BASE_H

#include <errno.h>

#include "wheel/run/work.h"

/* What a call on an object with a base begins with: 0; -EINVAL: NULL; -EPERM: in a forked child. */
#define TW__CHECK(object) (tw_unlikely(!(object)) ? -EINVAL : tw__forked((object)->base.service) ? -EPERM : 0)

struct tw__base {
	tw_service *service;
	tw_executor *executor; /* takes submits from any thread */
};

/* executor NULL: whatever runs the service's own callbacks. 0, or -ESHUTDOWN: service or pool are closed; -EPERM: forked child. */
int tw__base_hold(struct tw__base *base, tw_service *service, tw_executor *executor);

/* No work is out. The base's holder does not touch either afterwards. */
void tw__base_let_go(const struct tw__base *base);

/* The holder has been destroyed while work of his is out: the service's close waits for him. When it is home: */
void tw__base_leave(const struct tw__base *base);
void tw__base_let_go_left(const struct tw__base *base);

#endif
