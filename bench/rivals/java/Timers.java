/** The timers of a library, as the workloads use them: one timer for each slot, named by the slot's number. */
interface Timers {
	/** Schedules the slot's timer, which is not pending: task runs once, delay nanoseconds from now. */
	void schedule(int slot, long delay, Runnable task);

	/** Cancels the slot's timer. True: it was pending, and will never run. */
	boolean cancel(int slot);

	/** Arms the slot's timer for delay nanoseconds from now. True: it was pending, and its old deadline is void. */
	boolean rearm(int slot, long delay, Runnable task);

	/** The number of pending timers, counted from the timers themselves. Only while no other thread uses them. */
	long pending();

	/** A cancel that returns true does not exclude that the task has begun: some such tasks run. */
	default boolean cancelMayOverlap() {
		return false;
	}
}
