import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import io.netty.util.TimerTask;
import io.netty.util.concurrent.DefaultThreadFactory;
import java.util.concurrent.TimeUnit;

/**
 * Netty's HashedWheelTimer: a hashed wheel with a thread of its own, which takes new and cancelled timeouts from two
 * queues in each tick. The use chosen:
 *
 * A tick of 1 ms, as all candidates with ticks have it (its default is 100 ms), and 65536 buckets, so that no timeout
 * of a workload takes more than one round: with the default of 512 the thread would look at each timeout in every
 * half second. Leak detection is off, as in production; pending timeouts have no bound, so none is counted twice.
 *
 * A timeout cannot be moved: a move is cancel and schedule. Each schedule allocates a Timeout; the TimerTask is the
 * slot's own. Pending timers are counted from the timeouts: HashedWheelTimer.pendingTimeouts() of 4.1.48 counts one that
 * is cancelled in the tick in which it is due down twice.
 */
final class Netty implements Timers {
	private final HashedWheelTimer wheel =
	    new HashedWheelTimer(new DefaultThreadFactory("wheel"), 1, TimeUnit.MILLISECONDS, 65536, false, 0);
	private final Timeout[] timeouts;
	private final Task[] tasks;

	/** The TimerTask of a slot's Runnable. A new one is made only for a new Runnable. */
	private static final class Task implements TimerTask {
		final Runnable job;

		Task(Runnable job) {
			this.job = job;
		}

		@Override
		public void run(Timeout timeout) {
			job.run();
		}
	}

	Netty(int slots) {
		timeouts = new Timeout[slots];
		tasks = new Task[slots];
		wheel.start();
	}

	@Override
	public void schedule(int slot, long delay, Runnable task) {
		Task mine = tasks[slot];
		if (mine == null || mine.job != task)
			tasks[slot] = mine = new Task(task);
		timeouts[slot] = wheel.newTimeout(mine, delay, TimeUnit.NANOSECONDS);
	}

	@Override
	public boolean cancel(int slot) {
		return timeouts[slot].cancel();
	}

	@Override
	public boolean rearm(int slot, long delay, Runnable task) {
		boolean pending = timeouts[slot].cancel();
		schedule(slot, delay, task);
		return pending;
	}

	@Override
	public long pending() {
		long count = 0;
		for (Timeout timeout : timeouts)
			if (timeout != null && !timeout.isCancelled() && !timeout.isExpired())
				count++;
		return count;
	}
}
