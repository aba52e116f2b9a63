import { mkdir, writeFile } from 'node:fs/promises';
import type { Table } from '../harness/report.ts';
import { SERVER_TEXT } from '../harness/server.ts';
import type { ScenarioResult } from '../scenario.ts';
import { ABOUT } from './about.ts';
import { drawChart } from './draw-chart.ts';
import { machine } from './machine.ts';

const FILE = 'docs/benchmarks.md';

/** Writes the page and its charts; answers its path in the repository. */
export async function writePage(results: readonly ScenarioResult[]): Promise<string> {
  const charts = new URL('../../docs/benchmarks/', import.meta.url);
  await mkdir(charts, { recursive: true });
  const sections: string[] = [];
  for (const { scenario, report } of results) {
    const shown: string[] = [];
    for (const chart of report?.charts ?? []) {
      await drawChart(chart, new URL(`${chart.name}.svg`, charts));
      shown.push(`![${chart.title}](benchmarks/${chart.name}.svg)`);
    }
    sections.push(
      [
        `## ${scenario}`,
        ABOUT[scenario] ?? '',
        ...(report?.tables ?? []).map(markdown),
        ...shown,
        (report?.remarks ?? [])
          .filter((remark) => remark !== SERVER_TEXT)
          .map((remark) => `- ${remark}`)
          .join('\n'),
      ].join('\n\n'),
    );
  }
  await writeFile(
    new URL(`../../${FILE}`, import.meta.url),
    `${[introduction(), missedOf(results), ...sections].join('\n\n')}\n`,
  );
  return FILE;
}

function introduction(): string {
  const [hardware, versions] = machine();
  return `# Benchmarks

All figures are of one run of \`npm run bench -- all\` on ${new Date().toISOString().slice(0, 10)}, which has written this page.

- ${hardware}
- ${versions}
- ${SERVER_TEXT}

What to make of them:

- Server, workers and enqueuers share the machine. So these figures are about what a queue costs, not about what your
  server can do; **compare the ratios, which are of the same run, and not the figures with those of other pages**.
- Whatever works runs in a process of its own, on the same Node.js, as plain JavaScript. The systems take turns in each of the
  runs, every time in a fresh database; the figures are medians. Warming up is not counted.
- After each drain it is checked that every job was done, and none twice.
- The peers are at their best known settings, which are named below each table. If you know better ones, please say so.

One scenario, or a short look at all:

\`\`\`sh
npm run bench -- drain
npm run bench -- all --quick
\`\`\``;
}

function missedOf(results: readonly ScenarioResult[]): string {
  const missed = results.flatMap(({ missed = [] }) => missed);
  if (missed.length === 0)
    return 'Every figure that [the project asks of itself](decisions.md) was reached in this run.';
  return `These figures that the project asks of itself were missed in this run ([why](decisions.md#figures-that-were-wanted-and-are-not-reached)):\n\n${missed.map((figure) => `- ${figure}`).join('\n')}`;
}

function markdown({ title, header, rows }: Table): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [
    `**${title}**`,
    '',
    line(header),
    line(header.map((_, column) => (column === 0 ? '---' : '---:'))),
    ...rows.map(line),
  ].join('\n');
}
