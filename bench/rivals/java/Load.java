import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CyclicBarrier;

/**
 * W1, W2 and W3: the load of several threads, as in bench/load.c. The warm-up lasts until the code
 * is compiled.
 */
final class Load {
	private static final int OPS_PER_TURN = 64, CHUNK = OPS_PER_TURN * 16, OUTSTANDING = 64;
	private static final long IDLE = 30 * Order.SECOND;

	private final Order order;
	private final Timers timers;
	private final Job[] jobs;
	private final CyclicBarrier barrier;
	private final Worker[] workers;
	private volatile long ops;
	private long cpu, wall;

	static int slots(Order order) {
		return order.workload.equals("W2") ? OUTSTANDING * order.threads : order.n;
	}

	Load(Order order, Timers timers) {
		this.order = order;
		this.timers = timers;
		ops = order.ops;
		barrier = new CyclicBarrier(order.threads);
		workers = new Worker[order.threads];
		jobs = new Job[slots(order)];
		for (int slot = 0; slot < jobs.length; slot++)
			jobs[slot] = new Job();
	}

	void run() throws InterruptedException {
		for (int i = 0; i < order.threads; i++)
			workers[i] = new Worker(i);
		for (Worker worker : workers)
			worker.start();
		long scheduled = 0, cancelled = 0;
		for (Worker worker : workers) {
			worker.join();
			scheduled += worker.scheduled;
			cancelled += worker.cancelled;
		}
		double done = (double) ops * order.threads;
		System.out.println("ops " + ops);
		Order.figure("ns_per_op", (double) wall * order.threads / done);
		Order.figure("cpu_ns_per_op", cpu / done);
		Order.figure("ops", done);
		Order.checkLedger(timers, scheduled, cancelled);
		Recorder.report();
	}

	private long firstStart() {
		long first = Long.MAX_VALUE;
		for (Worker worker : workers)
			first = Math.min(first, worker.started);
		return first;
	}

	private final class Worker extends Thread {
		final int index, first, slots;
		final Draw draws;
		long scheduled, cancelled, started;
		private long now;
		private int oldest;

		Worker(int index) {
			this.index = index;
			slots = jobs.length / order.threads;
			first = index * slots;
			draws = new Draw(index + 1);
		}

		@Override
		public void run() {
			try {
				measure();
			} catch (InterruptedException | BrokenBarrierException impossible) {
				throw new IllegalStateException(impossible);
			}
		}

		private void measure() throws InterruptedException, BrokenBarrierException {
			fill();
			barrier.await();
			double speed = warmUp();
			barrier.await();
			long before = 0;
			if (index == 0) {
				if (ops == 0)
					ops = fitting(speed);
				before = Order.cpu();
			}
			barrier.await();
			started = System.nanoTime();
			work(ops);
			barrier.await();
			if (index == 0) {
				wall = System.nanoTime() - firstStart();
				cpu = Order.cpu() - before;
			}
		}

		private long fitting(double speed) {
			double fitting = speed * (order.quick ? 100 : 200) * Order.MILLISECOND;
			double least = order.quick ? 0 : 1e6 / order.threads;
			if (fitting < least)
				fitting = Math.min(least, 3 * fitting);
			return ((long) fitting / OPS_PER_TURN + 1) * OPS_PER_TURN;
		}

		/** Operations per nanosecond at the end of the warm-up. At least so long, and until each timer was replaced once. */
		private double warmUp() {
			long start = System.nanoTime(), elapsed = 0, done = 0;
			long least = (order.quick ? 500 : 1000) * Order.MILLISECOND, most = 3 * Order.SECOND;
			while (elapsed < least || (done < slots && elapsed < most)) {
				work(CHUNK);
				done += CHUNK;
				elapsed = System.nanoTime() - start;
			}
			long middle = System.nanoTime();
			for (done = 0; System.nanoTime() - middle < 50 * Order.MILLISECOND; done += CHUNK)
				work(CHUNK);
			return (double) done / (System.nanoTime() - middle);
		}

		private void fill() {
			boolean request = order.workload.equals("W2"), touch = order.workload.equals("W3");
			long from = touch ? IDLE / 3 : Order.SECOND;
			long to = touch ? IDLE : request ? Order.SECOND : 60 * Order.SECOND;
			for (int i = 0; i < slots; i++) {
				if (i % OPS_PER_TURN == 0)
					now = System.nanoTime();
				schedule(first + i, Draw.between(draws.next(), from, to));
			}
		}

		private void work(long count) {
			switch (order.workload) {
			case "W1":
				churn(count);
				break;
			case "W2":
				request(count);
				break;
			default:
				touch(count);
			}
		}

		private void churn(long count) {
			for (long i = 0; i < count; i++) {
				if (i % OPS_PER_TURN == 0)
					now = System.nanoTime();
				long draw = draws.next();
				int slot = first + Draw.slot(draw, slots);
				cancel(slot);
				schedule(slot, Draw.between(draw, Order.SECOND, 60 * Order.SECOND));
			}
		}

		private void request(long count) {
			for (long i = 0; i < count; i++) {
				if (i % OPS_PER_TURN == 0)
					now = System.nanoTime();
				int slot = first + oldest;
				oldest = (oldest + 1) % OUTSTANDING;
				cancel(slot);
				schedule(slot, Order.SECOND);
			}
		}

		private void touch(long count) {
			for (long i = 0; i < count; i++) {
				if (i % OPS_PER_TURN == 0)
					now = System.nanoTime();
				int slot = first + Draw.slot(draws.next(), slots);
				Job job = jobs[slot];
				job.deadline = now + IDLE;
				scheduled++;
				if (timers.rearm(slot, IDLE, job))
					cancelled++;
			}
		}

		/** A job that may be about to run keeps its deadline: the slot gets another. */
		private void cancel(int slot) {
			if (timers.cancel(slot))
				cancelled++;
			else
				jobs[slot] = new Job();
		}

		private void schedule(int slot, long delay) {
			Job job = jobs[slot];
			job.deadline = now + delay;
			timers.schedule(slot, delay, job);
			scheduled++;
		}
	}
}
