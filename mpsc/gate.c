#include "mpsc/gate.h"

#include <linux/membarrier.h>

#include "mpsc/base/assert.h"
#include "mpsc/base/process.h"

/* False: the kernel has it not, or a sandbox refuses it. */
static bool membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0) == 0;
}

void tw__gate_init(struct tw__gate *gate)
{
	*gate = (struct tw__gate){
	    .asymmetric = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED), .bell_fd = -1};
	tw_store_relaxed(&gate->word, TW__GATE_ACCEPTING);
}

uint64_t tw__gate_publish(struct tw__gate *gate, uint64_t flags)
{
	TW_ASSERT(!(flags >> TW__GATE_SEQUENCE_SHIFT));
	uint64_t sequence = tw__gate_sequence(tw_load_relaxed(&gate->word)) + 1;
	uint64_t word = sequence << TW__GATE_SEQUENCE_SHIFT | flags;
	tw_exchange_seq_cst(&gate->word, word); /* GATE1: pairs with look; GATE2 */
	return word;
}

bool tw__gate_barrier(struct tw__gate *gate)
{
	return !gate->asymmetric || /* both sides are sequentially consistent */
	       membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED); /* GATE2 */
}

/* The value it had. */
static uint32_t clear_bell(struct tw__gate *gate)
{
	/* GATE3: pairs with ring */
	uint32_t was = tw_exchange_seq_cst(&gate->bell, gate->bell_quiet);
	if (was == (TW__BELL_ON_FD | TW__BELL_RUNG))
		gate->bell_owed++;
	return was;
}

bool tw__gate_arm_bell(struct tw__gate *gate)
{
	uint32_t was = clear_bell(gate);
	uint64_t written;
	if (gate->bell_owed && tw__eventfd_take(gate->bell_fd, &written)) {
		/* below zero, by a ring that the next line clears */
		gate->bell_owed -= (uint32_t)written;
		was |= clear_bell(gate);
	}
	return was & TW__BELL_RUNG;
}

void tw__gate_ring_on(struct tw__gate *gate, int event_fd)
{
	TW_ASSERT(event_fd >= 0 && gate->bell_quiet == 0);
	gate->bell_fd = event_fd;
	gate->bell_quiet = TW__BELL_ON_FD;
}

void tw__gate_sleep(struct tw__gate *gate, uint64_t deadline_ns)
{
	TW_ASSERT(gate->bell_quiet == 0); /* with an eventfd the driver waits on that */
	if (tw_load_relaxed(&gate->bell) == 0)
		tw__futex_wait(&gate->bell, 0, deadline_ns);
}

void tw__gate_ring(struct tw__gate *gate)
{
	uint32_t was = tw_or_seq_cst(&gate->bell, TW__BELL_RUNG); /* GATE3: pairs with arm_bell */
	if (was == 0)
		tw__futex_wake(&gate->bell, 1);
	else if (was == TW__BELL_ON_FD)
		tw__eventfd_add(gate->bell_fd); /* cannot fail: the count is small */
}
