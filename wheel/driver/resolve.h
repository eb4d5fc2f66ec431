/* What an entry of the wheel means now. */
#ifndef TW_WHEEL_RESOLVE_H
#define TW_WHEEL_RESOLVE_H

#include "wheel/wheel.h"
#include "wheel/core/service.h"

void tw__judge(void *context, enum tw__judge_for what_for, const struct tw__place *place,
	       const tw__wheel_entry *entries, unsigned n, uint64_t *verdicts);

/* The whole of a FAR deadline has become known. */
void tw__note_far(tw_service *service, uint32_t slot, uint32_t generation, uint64_t far_tick);

/* An entry has left the wheel without having been judged. */
void tw__note_handed(tw_service *service, tw__wheel_entry entry);

/* Files an entry whose timer's word is `word` (armed, filed) for `tick`; a FAR one by its note. back: it was handed over, and is not any more (resolve.c). */
void tw__file(tw_service *service, uint32_t slot, uint64_t word, uint64_t tick, bool back);

#endif
