// Reads differences.md: each listed difference has a heading, and code blocks "script" and "trace".
// A line of the trace with "-" is of our side only, one with "+" of the other side only.

import {readFileSync} from 'node:fs';

export function readPage(url) {
	const page = readFileSync(url, 'utf8');
	return page
		.split(/^### /m)
		.slice(1)
		.map((section) => {
			const block = (name) => {
				const found = section.match(new RegExp(`^\`\`\`${name}\\n([^]*?)^\`\`\``, 'm'));
				if (!found)
					throw new Error(
						`differences.md: "${section.split('\n')[0]}" has no block "${name}"`,
					);
				return found[1].trim();
			};
			const lines = block('trace').split('\n');
			const side = (mark, others) =>
				lines
					.filter((line) => !line.startsWith(others))
					.map((line) => (line.startsWith(mark) ? line.slice(1) : line))
					.join('\n');
			return {
				title: section.split('\n')[0],
				script: block('script'),
				mine: side('-', '+'),
				other: side('+', '-'),
			};
		});
}
