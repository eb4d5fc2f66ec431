/* Groups that wait to be reaped become entries of the service's own outbox. */
#ifndef TW_WHEEL_REAP_COLLECT_H
#define TW_WHEEL_REAP_COLLECT_H

#include "wheel/core/service.h"

/*
 * The driver's: appends waiting groups to what is ready for the executor, as many as a chunk holds
 * at most.
 */
void tw__groups_collect(tw_service *service);

#endif
