package peers;

import java.io.BufferedReader;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A script, in the format of ours/script.h, and the runs of its tasks. */
final class Script {
	private static final int MOST_RUNS = 400;

	record Step(int on, int nth, String op, int[] args) {
		int arg(int i) {
			return i < args.length ? args[i] : 0;
		}
	}

	interface Player {
		void step(Step step, boolean inside);
	}

	final String kind;
	final List<Step> steps = new ArrayList<>();
	private final Map<Integer, Integer> runs = new HashMap<>();
	private int runsInAll;

	private Script(String header) {
		kind = header.split(" ")[1];
	}

	/** null: no more. */
	static Script read(BufferedReader in) throws IOException {
		String line = in.readLine();
		if (line == null)
			return null;
		Script script = new Script(line);
		while (!(line = in.readLine()).equals("end"))
			script.steps.add(parse(line));
		return script;
	}

	private static Step parse(String line) {
		String[] words = line.split(" ");
		boolean isInside = words[0].equals("on");
		String[] rest = isInside ? Arrays.copyOfRange(words, 3, words.length) : words;
		int[] args = Arrays.stream(rest).skip(1).mapToInt(Integer::parseInt).toArray();
		return new Step(isInside ? Integer.parseInt(words[1]) : -1, isInside ? Integer.parseInt(words[2]) : 0, rest[0], args);
	}

	void play(Player player, StringBuffer trace) {
		for (int i = 0; i < steps.size(); i++)
			if (steps.get(i).on < 0) {
				trace.append("> ").append(i).append('\n');
				player.step(steps.get(i), false);
			}
	}

	/** Carries out the steps that belong to this run of a task. */
	void run(int id, Player player) {
		int nth = runs.merge(id, 1, Integer::sum);
		if (++runsInAll > MOST_RUNS)
			throw new IllegalStateException("too many runs");
		for (Step step : steps)
			if (step.on == id && step.nth == nth)
				player.step(step, true);
	}
}
