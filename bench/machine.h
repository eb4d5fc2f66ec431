/* What the figures were measured on. */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

struct machine {
	unsigned cores; /* that this process may use */
	char cpu[128];
	char compiler[128];
	/* "unknown" outside of a checkout; "-dirty" behind it: there were changes */
	char commit[64];
	double clock_ns, cas_ns, first_touch_ns;
};

unsigned machine_cores(void);
void machine_look(struct machine *machine);

#endif
