/** W13: schedule and cancel timed apart, as bench/workload_apart.c has it. */
final class Apart {
	private static final int LEAST_BATCH = 64, MOST_BATCH = 65536;
	private static final long SHORTEST = 30 * Order.SECOND, LONGEST = 60 * Order.SECOND;

	private final Order order;
	private final Timers timers;
	private final Job[] jobs;
	private final Draw draws = new Draw(1);
	private final int batch;
	private int position;
	private long scheduled, cancelled, scheduleTime, cancelTime;

	Apart(Order order, Timers timers) {
		this.order = order;
		this.timers = timers;
		batch = Math.max(LEAST_BATCH, Math.min(MOST_BATCH, order.n / 8));
		jobs = new Job[order.n];
		for (int slot = 0; slot < order.n; slot++)
			jobs[slot] = new Job();
	}

	void run() {
		long now = System.nanoTime();
		for (int slot = 0; slot < order.n; slot++)
			schedule(slot, now);
		rounds((order.quick ? 500 : 1000) * Order.MILLISECOND);
		scheduleTime = cancelTime = 0;
		long cpu = Order.cpu(), before = cancelled;
		rounds((order.quick ? 100 : 500) * Order.MILLISECOND);
		cpu = Order.cpu() - cpu;
		double ops = cancelled - before;
		Order.figure("schedule_ns", scheduleTime / ops);
		Order.figure("cancel_ns", cancelTime / ops);
		Order.figure("cpu_ns_per_op", cpu / ops);
		Order.checkLedger(timers, scheduled, cancelled);
		Recorder.report();
	}

	private void schedule(int slot, long now) {
		long delay = Draw.between(draws.next(), SHORTEST, LONGEST);
		Job job = jobs[slot];
		job.deadline = now + delay;
		timers.schedule(slot, delay, job);
		scheduled++;
	}

	private void rounds(long duration) {
		for (long end = System.nanoTime() + duration; System.nanoTime() < end;)
			round();
	}

	/** The stride has no factor in common with n, so that a batch names no slot twice. */
	private int next() {
		position = (int) ((position + 1_000_003L) % order.n);
		return position;
	}

	private void round() {
		int first = position;
		long start = System.nanoTime();
		for (int i = 0; i < batch; i++)
			if (timers.cancel(next()))
				cancelled++;
		long middle = System.nanoTime();
		position = first;
		for (int i = 0; i < batch; i++)
			schedule(next(), middle);
		scheduleTime += System.nanoTime() - middle;
		cancelTime += middle - start;
	}
}
