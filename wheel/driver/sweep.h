/* Sweeping dead entries out of the wheel. */
#ifndef TW_WHEEL_SWEEP_H
#define TW_WHEEL_SWEEP_H

#include "wheel/core/service.h"

/* What a sweep takes an entry for dead by (sweep.c). */
enum tw__sweep_by { TW__SWEEP_BY_DRAINED, TW__SWEEP_BY_CENSUS, TW__SWEEP_BY_WORDS };

/* The driver's. */
struct tw__sweep {
	uint32_t census;        /* the slot at which a census stands; 0: none is under way */
	enum tw__sweep_by by;   /* of the sweep under way, or the last one */
	bool writes_down;       /* drains write down what generations slots have reached */
	enum tw__sweep_by next; /* of the next sweep, at least */
};

/* Sweeps a part if a sweep is under way, or, with `look`, if one is wanted. */
void tw__sweep(tw_service *service, uint64_t drained, bool look);

/* Whether a sweep is wanted. */
bool tw__sweep_wanted(tw_service *service);

/* A whole sweep in one call. */
void tw__sweep_all(tw_service *service);

/* Whether a sweep is under way. */
bool tw__sweep_under_way(const tw_service *service);

#endif
