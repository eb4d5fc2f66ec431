import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;

/** The bench's order, and the pipe to the bench. */
final class Order {
	static final long SECOND = 1_000_000_000L, MILLISECOND = 1_000_000L;

	private static final BufferedReader in = new BufferedReader(new InputStreamReader(System.in));

	final String workload;
	final int n, threads;
	final long ops;
	final boolean quick;

	private Order(String[] words) {
		workload = words[0];
		n = Integer.parseInt(words[1]);
		threads = Integer.parseInt(words[2]);
		ops = Long.parseLong(words[3]);
		quick = words[4].equals("1");
	}

	static Order read() throws IOException {
		return new Order(in.readLine().split(" "));
	}

	/** The CPU time of this process, all threads of the virtual machine included. */
	static synchronized long cpu() {
		System.out.println("cpu");
		System.out.flush();
		try {
			return Long.parseLong(in.readLine());
		} catch (IOException gone) {
			throw new IllegalStateException(gone);
		}
	}

	static void figure(String name, double value) {
		System.out.println("figure " + name + " " + value);
	}

	static void violation(String text) {
		System.out.println("violation " + text);
	}

	static void pause(long nanoseconds) {
		long end = System.nanoTime() + nanoseconds;
		for (long left; (left = end - System.nanoTime()) > 0;)
			java.util.concurrent.locks.LockSupport.parkNanos(left);
	}

	/** Every timer that was scheduled was cancelled, or has fired, or is pending: within five seconds. */
	static void checkLedger(Timers timers, long scheduled, long cancelled) {
		long end = System.nanoTime() + 5 * SECOND;
		long fired, pending;
		do {
			pause(2 * MILLISECOND);
			long before = Recorder.fired();
			pending = timers.pending();
			fired = scheduled - cancelled - pending;
			long after = Recorder.fired();
			long overlaps = timers.cancelMayOverlap() ? 1 + after / 100 : 0;
			if (before - overlaps <= fired && fired <= after)
				return;
		} while (System.nanoTime() < end);
		violation("ledger: scheduled " + scheduled + ", cancelled " + cancelled + ", fired " + Recorder.fired()
			  + ", pending " + pending);
	}
}
