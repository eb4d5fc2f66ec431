/** What a slot's timer runs. The deadline's lower bound is set before each schedule. */
final class Job implements Runnable {
	long deadline;

	@Override
	public void run() {
		Recorder.note(deadline, System.nanoTime());
	}
}
