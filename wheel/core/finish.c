#include "wheel/core/finish.h"

#include <limits.h>

void tw__ring_finish(tw_service *service)
{
	tw_add_seq_cst(&service->finish_bell, 1); /* RUN5 */
	tw__futex_wake(&service->finish_bell, INT_MAX);
}
