import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { loadavg } from 'node:os';
import type { Table } from '../harness/report.ts';
import { SERVER_TEXT } from '../harness/server.ts';
import type { ScenarioResult } from '../scenario.ts';
import { ABOUT } from './about.ts';
import { drawChart } from './draw-chart.ts';
import { machine } from './machine.ts';

const FILE = 'docs/benchmarks.md';
const PAGE = new URL(`../../${FILE}`, import.meta.url);
const CHARTS = new URL('../../docs/benchmarks/', import.meta.url);

/** Writes the page and its charts; answers its path in the repository. */
export async function writePage(results: readonly ScenarioResult[]): Promise<string> {
  const sections: string[] = [];
  for (const result of results) sections.push(await sectionOf(result));
  await writeFile(PAGE, `${[introduction(), missedOf(results), ...sections].join('\n\n')}\n`);
  return FILE;
}

/**
 * Writes the section of one scenario and its charts into the page as it is, in place of an older one or where the given order of
 * names puts it, and says in it when and on what it was measured; answers the page's path in the repository.
 */
export async function writeSection(result: ScenarioResult, order: readonly string[]): Promise<string> {
  const { scenario, missed = [] } = result;
  const [hardware = '', versions = ''] = machine();
  const remarks = [
    `This section is of a run of its own, \`npm run bench -- ${scenario}\`, on ${today()}: ${hardware}; ${versions}; ` +
      `the load of the machine was ${loadavg()
        .map((load) => load.toFixed(1))
        .join(', ')} at its end.`,
    ...missed.map((figure) => `Missed: ${figure}.`),
  ];
  const section = await sectionOf(result, remarks);
  const [introduction = '', ...others] = (await readFile(PAGE, 'utf8')).trimEnd().split(/\n\n(?=## )/);
  const nameOf = (text: string) => /^## (\S+)/.exec(text)?.[1] ?? '';
  const sections = [...others.filter((text) => nameOf(text) !== scenario), section];
  sections.sort((a, b) => order.indexOf(nameOf(a)) - order.indexOf(nameOf(b)));
  await writeFile(PAGE, `${[introduction, ...sections].join('\n\n')}\n`);
  return FILE;
}

async function sectionOf(
  { scenario, report }: ScenarioResult,
  moreRemarks: readonly string[] = [],
): Promise<string> {
  await mkdir(CHARTS, { recursive: true });
  const shown: string[] = [];
  for (const chart of report?.charts ?? []) {
    await drawChart(chart, new URL(`${chart.name}.svg`, CHARTS));
    shown.push(`![${chart.title}](benchmarks/${chart.name}.svg)`);
  }
  const remarks = [...(report?.remarks ?? []).filter((remark) => remark !== SERVER_TEXT), ...moreRemarks];
  return [
    `## ${scenario}`,
    ABOUT[scenario] ?? '',
    ...(report?.tables ?? []).map(markdown),
    ...shown,
    remarks.map((remark) => `- ${remark}`).join('\n'),
  ].join('\n\n');
}

function today(): string {
  return new Date().toISOString().slice(0, 10);
}

function introduction(): string {
  const [hardware, versions] = machine();
  return `# Benchmarks

Unless their section says otherwise, all figures are of one run of \`npm run bench -- all\` on ${today()}, which has written this page.

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

One scenario, the same with its section of this page written anew, or a short look at all:

\`\`\`sh
npm run bench -- drain
npm run bench -- drain --write
npm run bench -- all --quick
\`\`\``;
}

function missedOf(results: readonly ScenarioResult[]): string {
  const missed = results.flatMap(({ missed = [] }) => missed);
  if (missed.length === 0)
    return 'Every figure that [the project asks of itself](decisions/README.md) was reached in this run.';
  return `These figures that the project asks of itself were missed in this run ([why](decisions/missed-goals.md)):\n\n${missed.map((figure) => `- ${figure}`).join('\n')}`;
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
