import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLongArray;

/** Before anything is measured: timers that are cancelled and moved while others fire, each looked after one by one. */
final class Trial {
	private static final int TIMERS = 20000, CHANGES_PER_MS = 100, ROUNDS = 150;
	private static final long FIRST = 50 * Order.MILLISECOND, LAST = 200 * Order.MILLISECOND;

	/** No run of the slot may start before this: lowered before a move, raised after a move of a pending timer. */
	private final AtomicLongArray notBefore = new AtomicLongArray(TIMERS);
	private final AtomicIntegerArray runs = new AtomicIntegerArray(TIMERS);
	private final int[] armed = new int[TIMERS], overlaps = new int[TIMERS];
	private final Runnable[] jobs = new Runnable[TIMERS];
	private final Timers timers;
	private final Draw draws = new Draw(1);

	static int slots() {
		return TIMERS;
	}

	Trial(Timers timers) {
		this.timers = timers;
		for (int i = 0; i < TIMERS; i++) {
			int slot = i;
			jobs[slot] = () -> {
				long now = System.nanoTime();
				runs.incrementAndGet(slot);
				Recorder.note(notBefore.get(slot), now);
			};
		}
	}

	void run() {
		for (int slot = 0; slot < TIMERS; slot++) {
			long delay = Draw.between(draws.next(), FIRST, LAST);
			notBefore.set(slot, System.nanoTime() + delay);
			timers.schedule(slot, delay, jobs[slot]);
			armed[slot] = 1;
		}
		for (int round = 0; round < ROUNDS; round++) {
			Order.pause(Order.MILLISECOND);
			for (int i = 0; i < CHANGES_PER_MS; i++)
				change();
		}
		long wanted = 0, end = System.nanoTime() + 10 * Order.SECOND;
		for (int count : armed)
			wanted += count;
		Order.pause(LAST + 20 * Order.MILLISECOND);
		while (Recorder.fired() < wanted && System.nanoTime() < end)
			Order.pause(2 * Order.MILLISECOND);
		judge();
		Recorder.report();
	}

	private void change() {
		long draw = draws.next();
		int slot = Draw.slot(draw, TIMERS);
		if (draw % 3 == 0) {
			if (timers.cancel(slot)) {
				noteOverlap(slot, notBefore.get(slot));
				armed[slot]--;
			}
			return;
		}
		long delay = Draw.between(draws.next(), 0, LAST), deadline = System.nanoTime() + delay;
		long earlier = notBefore.get(slot);
		notBefore.set(slot, Math.min(deadline, earlier));
		if (!timers.rearm(slot, delay, jobs[slot]))
			armed[slot]++;
		else if (!noteOverlap(slot, earlier))
			notBefore.set(slot, deadline);
	}

	/** True: the slot's timer was due when it was cancelled, and its task may have begun all the same. */
	private boolean noteOverlap(int slot, long due) {
		if (!timers.cancelMayOverlap() || System.nanoTime() < due)
			return false;
		overlaps[slot]++;
		return true;
	}

	private void judge() {
		for (int slot = 0; slot < TIMERS; slot++)
			if (runs.get(slot) < armed[slot] || runs.get(slot) > armed[slot] + overlaps[slot])
				Order.violation("a timer ran " + runs.get(slot) + " times instead of " + armed[slot]);
	}
}
