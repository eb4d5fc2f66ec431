package peers;

/**
 * The time that the executor and the wheel see in place of System.nanoTime and Thread.sleep. It
 * stands still until it is moved.
 *
 * The boot class loader loads this class, since ScheduledThreadPoolExecutor must see it.
 */
public final class VirtualTime {
	private static long now = 1_000_000_000_000L;
	private static long wakeAt = Long.MAX_VALUE; // of the one thread that sleeps
	private static boolean sleeps;

	private VirtualTime() {}

	public static synchronized long nanoTime() {
		return now;
	}

	/** Sleeps until the time has come to it. */
	public static synchronized void sleep(long ms) throws InterruptedException {
		wakeAt = now + ms * 1_000_000L;
		sleeps = true;
		VirtualTime.class.notifyAll();
		while (now < wakeAt)
			VirtualTime.class.wait();
		sleeps = false;
		wakeAt = Long.MAX_VALUE;
	}

	/** Moves the time. */
	public static synchronized void set(long ns) {
		now = ns;
		VirtualTime.class.notifyAll();
	}

	/** Waits until the other thread has done all that is due, and sleeps. */
	public static synchronized void awaitSleep() throws InterruptedException {
		while (!sleeps || now >= wakeAt)
			VirtualTime.class.wait();
	}

	/** Before a thread is started that will sleep. */
	public static synchronized void forgetSleep() {
		sleeps = false;
		wakeAt = Long.MAX_VALUE;
	}
}
