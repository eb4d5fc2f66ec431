/* The rate limit: tokens. Under the limiter's lock. */
#ifndef TW_EXECUTOR_LIMITER_RATE_H
#define TW_EXECUTOR_LIMITER_RATE_H

#include "executor/limiter/internal.h"

/* Tokens that are there; UINT64_MAX without a rate. */
uint64_t tw__rate_tokens(struct tw_limiter *l, uint64_t now_ns);

/* tw__rate_allows, where there is a rate. */
bool tw__rate_has_token(struct tw_limiter *l, uint64_t beyond, uint64_t now_ns);

/* Whether n tokens and one more are there; if not, they will be looked for when they are. */
static inline bool tw__rate_allows(struct tw_limiter *l, uint64_t beyond, uint64_t now_ns)
{
	return tw_likely(!l->rate.tokens) || tw__rate_has_token(l, beyond, now_ns);
}

/* An attempt for which a token was taken: its function is called next. Not under the lock. */
void tw__rate_begin(struct tw_limiter *l);

#endif
