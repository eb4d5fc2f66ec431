/* Memory goes back after a storm; see purge.c. */
#ifndef TW_WHEEL_PURGE_H
#define TW_WHEEL_PURGE_H

#include "wheel/core/service.h"

/* At the end of a poll. look: see whether there is much to give. busy: there is traffic. */
void tw__purge(tw_service *service, bool look, bool busy);

/* Before the driver sleeps: looks whether there is much to give. */
void tw__purge_look(tw_service *service);

/* Memory is going back, a step in each poll. */
bool tw__purging(const tw_service *service);

/* The deadline, or an earlier instant at which to give memory back. */
uint64_t tw__purge_wake_by(const tw_service *service, uint64_t deadline_ns);

#endif
