#include "executor/pool/layer.h"

#include "wheel/core/frame.h"

int tw__base_hold(struct tw__base *base, tw_service *service, tw_executor *executor)
{
	int r = tw__service_hold(service);
	if (r)
		return r;
	*base = (struct tw__base){.service = service,
				  .executor = executor ? executor : service->executor};
	tw_pool *pool = tw__pool_of(base->executor);
	r = pool ? tw__pool_join(pool, false) : 0;
	if (r)
		tw__service_let_go(service);
	return r;
}

bool tw__base_may_wait(const struct tw__base *base)
{
	tw_pool *pool = tw__pool_of(base->executor);
	return pool && !tw__pool_is_worker(pool) && !tw__inside(base->service) &&
	       !tw__inside_work(base->service);
}

void tw__base_let_go(const struct tw__base *base)
{
	tw_pool *pool = tw__pool_of(base->executor);
	if (pool) /* first: a pool of the service's own ends with it */
		tw__pool_leave(pool, false);
	(base->left ? tw__end_may_come : tw__service_let_go)(base->service);
}

void tw__base_leave_work(const struct tw__base *base, struct tw__work *work)
{
	if (!tw__pool_of(base->executor))
		tw__work_leave_executor(work);
}

void tw__base_leave(struct tw__base *base)
{
	base->left = true;
	tw__service_leave(base->service);
}
