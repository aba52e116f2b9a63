import { writeFile } from 'node:fs/promises';
import { parse, View } from 'vega';
import { compile, type TopLevelSpec } from 'vega-lite';
import type { Measurement } from './scenario.ts';

const FILE = 'docs/designs.svg';

/**
 * Draws jobs per second by consumers, one panel per depth and work; answers the file's path in the repository. Both axes are
 * logarithmic: a design that doubles with the consumers is a straight line upwards, one that works for one consumer at a
 * time is flat.
 */
export async function drawChart(measurements: readonly Measurement[]): Promise<string> {
  const names = [...new Set(measurements.map(({ design }) => design))];
  const rates = measurements.map(({ jobsPerSecond }) => jobsPerSecond);
  const [lowest, highest] = [Math.min(...rates), Math.max(...rates)];
  const spec: TopLevelSpec = {
    $schema: 'https://vega.github.io/schema/vega-lite/v6.json',
    title: { text: 'Jobs per second by consumers', anchor: 'start', fontSize: 16 },
    background: 'white',
    padding: 12,
    data: { values: measurements.map(toPoint) },
    facet: {
      row: {
        field: 'depth',
        title: null,
        sort: ['fresh queue', '100,000 jobs deep'],
        header: { labelFontSize: 13 },
      },
      column: {
        field: 'work',
        title: null,
        sort: ['no work', '5 ms of work per job'],
        header: { labelFontSize: 13 },
      },
    },
    spec: {
      width: 330,
      height: 260,
      mark: { type: 'line', point: { size: 45 }, strokeWidth: 2 },
      encoding: {
        x: {
          field: 'consumers',
          type: 'quantitative',
          scale: { type: 'log', base: 2 },
          axis: { values: [1, 2, 4, 8, 16], title: 'consumers', grid: false },
        },
        y: {
          field: 'jobsPerSecond',
          type: 'quantitative',
          scale: { type: 'log', domain: [lowest * 0.8, highest * 1.25], nice: false },
          axis: {
            title: 'jobs/s',
            format: ',.0f',
            values: [100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000],
          },
        },
        color: {
          field: 'design',
          type: 'nominal',
          sort: names,
          scale: { domain: names, range: COLORS },
          legend: { title: null, labelFontSize: 13, labelLimit: 0, symbolSize: 120 },
        },
        shape: { field: 'design', type: 'nominal', sort: names, scale: { domain: names } },
      },
    },
    config: { font: 'sans-serif', axis: { labelFontSize: 11, titleFontSize: 12 } },
  };
  const view = new View(parse(compile(spec).spec), { renderer: 'none' });
  const svg = await view.toSVG();
  await writeFile(new URL(`../../${FILE}`, import.meta.url), `${svg}\n`);
  view.finalize();
  return FILE;
}

/** Told apart by people who see colours differently, too (after Okabe and Ito). */
const COLORS = ['#999999', '#e69f00', '#d55e00', '#56b4e9', '#009e73', '#cc79a7', '#000000'];

function toPoint({ design, depth, workMs, consumers, jobsPerSecond }: Measurement) {
  return {
    design,
    consumers,
    jobsPerSecond,
    depth: depth === 'fresh' ? 'fresh queue' : '100,000 jobs deep',
    work: workMs === 0 ? 'no work' : `${workMs} ms of work per job`,
  };
}
