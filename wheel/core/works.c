/* A piece of work on its way to the driver. The rules and the pairs: run/work.h. */
#include "wheel/core/works.h"

void tw__work_push_and_ring(tw_service *service, struct tw__work *work)
{
	tw_add_relaxed(&service->phase.end, 1); /* CLOSE1: comes before, by WORK1 and WORK3 */
	work->next = tw_load_relaxed(&service->works->stack);
	while (!tw_cas_seq_cst(&service->works->stack, &work->next, work)) { /* WORK1, WORK2 */
	}
	if (tw_load_seq_cst(&service->gate.word) & TW__GATE_PARKED) /* WORK2 */
		tw__gate_ring(&service->gate);
	tw__end_may_come(service);
}
