// Reads differences.md: each listed difference has a heading and a block. Below a step of the script,
// indented, is what it traces: a line with "-" on our side only, one with "+" on the other side only.

import {readFileSync} from 'node:fs';

const isTrace = (line) => /^[-+ ] {3}/.test(line);

/** The trace of one side: what is marked by `mark`, or not marked. */
function side(lines, mark) {
	const trace = [];
	let index = -1;
	for (const line of lines)
		if (!isTrace(line)) {
			if (!line.startsWith('on ')) trace.push(`> ${index + 1}`);
			index++;
		} else if (line[0] === ' ' || line[0] === mark) trace.push(line.slice(4));
	return trace.join('\n');
}

export function readPage(url) {
	return readFileSync(url, 'utf8')
		.split(/^### /m)
		.slice(1)
		.map((section) => {
			const title = section.split('\n')[0];
			const block = section.match(/^```\n([^]*?)\n```/m);
			if (!block) throw new Error(`differences.md: "${title}" has no block`);
			const [header, ...lines] = block[1].split('\n');
			const script = [header, ...lines.filter((line) => !isTrace(line))].join('\n');
			return {title, script, mine: side(lines, '-'), other: side(lines, '+')};
		});
}
