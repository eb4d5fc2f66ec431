#include "mpsc/gate.h"

#include "mpsc/membarrier.h"

void tw__gate_init(struct tw__gate *gate)
{
	gate->asymmetric = tw__membarrier_register();
	tw_store_relaxed(&gate->word, TW__GATE_LIVE | TW__GATE_ACCEPTING);
	tw_store_relaxed(&gate->plan, 0);
	tw_store_relaxed(&gate->bell, 0);
}

uint64_t tw__gate_publish(struct tw__gate *gate, uint64_t flags)
{
	uint64_t sequence = tw__gate_sequence(tw_load_relaxed(&gate->word)) + 1;
	uint64_t word = sequence << TW__GATE_SEQUENCE_SHIFT | TW__GATE_LIVE | flags;
	tw_exchange_seq_cst(&gate->word, word); /* P1: pairs with look; P2 */
	return word;
}

bool tw__gate_barrier(struct tw__gate *gate)
{
	if (!gate->asymmetric)
		return true;     /* both sides are sequentially consistent */
	return tw__membarrier(); /* P2 */
}

void tw__gate_arm_bell(struct tw__gate *gate)
{
	tw_exchange_seq_cst(&gate->bell, 0); /* P3: pairs with ring */
}

void tw__gate_sleep(struct tw__gate *gate, uint64_t deadline_ns)
{
	if (tw_load_relaxed(&gate->bell) == 0)
		tw__futex_wait(&gate->bell, 0, deadline_ns);
}

void tw__gate_ring(struct tw__gate *gate)
{
	if (tw_exchange_seq_cst(&gate->bell, 1) == 0) /* P3: pairs with arm_bell */
		tw__futex_wake(&gate->bell, 1);
}
