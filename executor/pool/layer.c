#include "executor/pool/layer.h"

int tw__base_hold(struct tw__base *base, tw_service *service, tw_executor *executor)
{
	int r = tw__service_hold(service);
	if (r)
		return r;
	*base = (struct tw__base){.service = service,
				  .executor = executor ? executor : service->executor};
	tw_pool *pool = tw__pool_of(base->executor);
	base->pooled = pool != NULL;
	r = pool ? tw__pool_join(pool, false) : 0;
	if (r)
		tw__service_let_go(service);
	return r;
}

bool tw__base_leave(struct tw__base *base, enum tw__base_step step)
{
	tw_pool *pool = tw__pool_of(base->executor);
	tw_service *service = base->service;
	if (step == TW__BASE_MAY_WAIT)
		return pool && !tw__pool_is_worker(pool) && !tw__inside(service) &&
		       !tw__inside_work(service);
	if (step == TW__BASE_LEFT) {
		base->left = true;
		tw__service_leave(service);
		return false;
	}
	if (pool) /* first: a pool of the service's own ends with it */
		tw__pool_leave(pool, false);
	(base->left ? tw__end_may_come : tw__service_let_go)(service);
	return false;
}
