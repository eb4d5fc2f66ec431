import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Java's ScheduledThreadPoolExecutor: a binary heap behind one lock. The use chosen:
 *
 * One thread, as all candidates have one thread for their timers; more threads would contend for the same lock.
 *
 * setRemoveOnCancelPolicy(true): a cancelled task leaves the heap at once. By default it stays until its deadline, so
 * that request timeouts of a minute would fill the memory. Removal is cheap, since each task knows its place.
 *
 * cancel(false) returns true for a task that has begun and not ended, as FutureTask has it. A user who must know needs
 * a flag of his own; none is used here, and the checks allow for it.
 *
 * A task cannot be moved: a move is cancel and schedule, as its documentation has it. Each schedule allocates the
 * task that the executor returns; the Runnable within is the connection's own and lives as long as the slot.
 */
final class Stpe implements Timers {
	private final ScheduledThreadPoolExecutor executor = new ScheduledThreadPoolExecutor(1);
	private final ScheduledFuture<?>[] futures;

	Stpe(int slots) {
		futures = new ScheduledFuture<?>[slots];
		executor.setRemoveOnCancelPolicy(true);
		executor.prestartAllCoreThreads();
	}

	@Override
	public void schedule(int slot, long delay, Runnable task) {
		futures[slot] = executor.schedule(task, delay, TimeUnit.NANOSECONDS);
	}

	@Override
	public boolean cancel(int slot) {
		return futures[slot].cancel(false);
	}

	@Override
	public boolean rearm(int slot, long delay, Runnable task) {
		boolean pending = futures[slot].cancel(false);
		schedule(slot, delay, task);
		return pending;
	}

	@Override
	public long pending() {
		return executor.getQueue().size();
	}

	@Override
	public boolean cancelMayOverlap() {
		return true;
	}
}
