/** W4: timers due uniformly over two seconds, as bench/workload_fire.c has it. */
final class Fire {
	private static final long WINDOW = 2 * Order.SECOND;
	private static final int CANCELLED_SHARE = 100, FILL_PER_MS = 2000;

	private final Order order;
	private final Timers timers;
	private final int slots;
	private final Due[] jobs;
	private static long sum; /* of the marks of all slots that ran; written by the library's thread */
	private long cpu;

	static int slots(Order order) {
		return order.n + order.n / CANCELLED_SHARE;
	}

	private static final class Due implements Runnable {
		final int slot;
		long deadline;

		Due(int slot) {
			this.slot = slot;
		}

		@Override
		public void run() {
			long now = System.nanoTime();
			sum += mark(slot);
			Recorder.note(deadline, now);
		}
	}

	Fire(Order order, Timers timers) {
		this.order = order;
		this.timers = timers;
		slots = slots(order);
		jobs = new Due[slots];
		for (int slot = 0; slot < slots; slot++)
			jobs[slot] = new Due(slot);
	}

	private static long mark(int slot) {
		long z = (slot + 1L) * 0x9e3779b97f4a7c15L;
		z = (z ^ z >>> 32) * 0xbf58476d1ce4e5b9L;
		return z ^ z >>> 29;
	}

	void run() {
		long took = scheduleAll(System.nanoTime() + 3600 * Order.SECOND, 2);
		for (int slot = 0; slot < slots; slot++)
			cancel(slot);
		warmUp();
		Order.pause(200 * Order.MILLISECOND);
		long fired = Recorder.fired(), before = sum;
		long first = System.nanoTime() + 200 * Order.MILLISECOND + 2 * took;
		scheduleAll(first, 1);
		if (System.nanoTime() >= first)
			Order.violation("too slow to schedule all timers before the first is due");
		long wanted = 0, marks = 0;
		for (int slot = 0; slot < slots; slot++)
			if (slot % (CANCELLED_SHARE + 1) == 0) {
				cancel(slot);
			} else {
				wanted++;
				marks += mark(slot);
			}
		letFire(first, fired + wanted);
		Order.figure("cpu_ns_per_op", cpu / (double) wanted);
		if (Recorder.fired() != fired + wanted)
			Order.violation(Recorder.fired() - fired + " of " + wanted + " timers ran");
		else if (sum - before != marks)
			Order.violation("as many timers ran as should, but others");
		Recorder.report();
	}

	private void cancel(int slot) {
		if (!timers.cancel(slot))
			Order.violation("a pending timer could not be cancelled");
	}

	/** The time that it took. Paced, as for all candidates. */
	private long scheduleAll(long first, long seed) {
		Draw draws = new Draw(seed);
		long start = System.nanoTime();
		for (int slot = 0; slot < slots; slot++) {
			Due job = jobs[slot];
			job.deadline = first + Draw.between(draws.next(), 0, WINDOW);
			timers.schedule(slot, job.deadline - System.nanoTime(), job);
			if (slot % FILL_PER_MS == FILL_PER_MS - 1)
				Order.pause(Order.MILLISECOND);
		}
		return System.nanoTime() - start;
	}

	/** Runs some timers until the code of expiry is compiled. Their lateness is not counted. */
	private void warmUp() {
		int some = Math.min(slots, 20000);
		for (int round = 0; round < 5; round++) {
			long fired = Recorder.fired();
			for (int slot = 0; slot < some; slot++) {
				jobs[slot].deadline = System.nanoTime() + 5 * Order.MILLISECOND;
				timers.schedule(slot, 5 * Order.MILLISECOND, jobs[slot]);
			}
			while (Recorder.fired() < fired + some)
				Order.pause(Order.MILLISECOND);
		}
		Recorder.forget();
	}

	private void letFire(long first, long wanted) {
		long end = first + WINDOW, patience = end + 20 * Order.SECOND + order.n * 10000L;
		Order.pause(first - Order.MILLISECOND - System.nanoTime());
		System.out.println("window " + Math.max(0, first - System.nanoTime()) + " " + WINDOW);
		cpu = Order.cpu();
		Order.pause(end - System.nanoTime());
		while (Recorder.fired() < wanted && System.nanoTime() < patience)
			Order.pause(2 * Order.MILLISECOND);
		cpu = Order.cpu() - cpu;
	}
}
