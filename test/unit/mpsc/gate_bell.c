/*
 * The bell of a driver that waits on a descriptor: a ring is never swallowed, however late a write
 * or a read comes.
 */
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "mpsc/gate.h"
#include "test/support/expect.h"
#include "test/support/faults.h"

static struct tw__gate gate;

static void once(void *what)
{
	faults_at_reads(NULL, NULL);
	(*(void (**)(void))what)();
}

/* Done once, by this thread, when it reads the next time. */
static void before_read(void (*what)(void))
{
	static void (*kept)(void);
	kept = what;
	faults_at_reads(once, &kept);
}

static void opened(void)
{
	tw__gate_init(&gate);
	tw__gate_ring_on(&gate, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	tw__gate_arm_bell(&gate);
}

static void closed(void)
{
	expect_in_fini();
	close(gate.bell_fd);
}

TestSuite(mpsc_gate_bell, .init = opened, .fini = closed);

/* The two halves of tw__gate_ring, of a thread that is stopped between them. */
static void begin_ring(void)
{
	tw_or_seq_cst(&gate.bell, TW__BELL_RUNG);
}

static void end_ring(void)
{
	const uint64_t one = 1;
	expect_eq(write(gate.bell_fd, &one, sizeof one), (ssize_t)sizeof one);
}

static bool is_readable(void)
{
	uint64_t written;
	return read(gate.bell_fd, &written, sizeof written) == sizeof written;
}

static void ring(void)
{
	tw__gate_ring(&gate);
}

static void end_ring_and_ring(void)
{
	end_ring();
	ring();
}

Test(mpsc_gate_bell, wakes_once_for_many_rings)
{
	ring();
	ring();
	expect_eq(is_readable(), true);
	expect_eq(is_readable(), false);
}

Test(mpsc_gate_bell, armed_again_is_quiet)
{
	ring();
	expect_eq(tw__gate_arm_bell(&gate), true);
	expect_eq(is_readable(), false);
	expect_eq(tw__gate_arm_bell(&gate), false);
}

Test(mpsc_gate_bell, a_late_write_and_a_ring_before_they_are_read_leave_it_able_to_ring)
{
	begin_ring();
	expect_eq(tw__gate_arm_bell(&gate), true);
	before_read(end_ring_and_ring);
	tw__gate_arm_bell(&gate);
	ring();
	expect_eq(is_readable(), true);
}

/* The late write comes after all, and wakes for those who left it to others. */
Test(mpsc_gate_bell, a_ring_that_is_read_in_place_of_a_late_write_is_made_good_by_it)
{
	begin_ring();
	expect_eq(tw__gate_arm_bell(&gate), true);
	before_read(ring);
	tw__gate_arm_bell(&gate);
	end_ring();
	ring();
	expect_eq(is_readable(), true);
}
