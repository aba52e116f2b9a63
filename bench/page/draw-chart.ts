import { writeFile } from 'node:fs/promises';
import { parse, View } from 'vega';
import { compile, type TopLevelSpec } from 'vega-lite';
import type { Chart } from '../harness/report.ts';

/** Told apart by people who see colours differently, too (after Okabe and Ito). */
const COLORS = [
  '#009e73',
  '#56b4e9',
  '#e69f00',
  '#d55e00',
  '#cc79a7',
  '#0072b2',
  '#000000',
  '#999999',
  '#b8a900',
  '#7f6000',
];

/** Draws a chart as SVG into a file. */
export async function drawChart(chart: Chart, file: URL): Promise<void> {
  const view = new View(parse(compile(specOf(chart)).spec), { renderer: 'none' });
  const svg = await view.toSVG();
  await writeFile(file, `${svg}\n`);
  view.finalize();
}

function specOf({ title, kind, x, y, points, log = false }: Chart): TopLevelSpec {
  const names = [...new Set(points.map(({ series }) => series))];
  const shared = {
    $schema: 'https://vega.github.io/schema/vega-lite/v6.json',
    title: { text: title, anchor: 'start' as const, fontSize: 15 },
    background: 'white',
    padding: 12,
    width: 620,
    data: { values: points.map((point) => ({ ...point })) },
    config: { font: 'sans-serif', axis: { labelFontSize: 11, titleFontSize: 12, labelLimit: 320 } },
  };
  const color = {
    field: 'series',
    type: 'nominal' as const,
    sort: names,
    scale: { domain: names, range: COLORS },
  };
  if (kind === 'bars') {
    return {
      ...shared,
      height: { step: 24 },
      // Bars begin at zero, where a logarithm does not.
      mark: log ? { type: 'point', filled: true, size: 150 } : { type: 'bar' },
      encoding: {
        y: { field: 'series', type: 'nominal', sort: names, title: null, axis: { labelLimit: 0, grid: log } },
        x: {
          field: 'y',
          type: 'quantitative',
          title: x,
          axis: { format: '~s' },
          ...(log && { scale: { type: 'log' } }),
        },
        color: { ...color, legend: null },
      },
    };
  }
  return {
    ...shared,
    height: 300,
    mark: { type: 'line', point: points.length < 100, strokeWidth: 2 },
    encoding: {
      x: { field: 'x', type: 'quantitative', title: x, axis: { grid: false, format: '~s' } },
      y: {
        field: 'y',
        type: 'quantitative',
        title: y,
        axis: { format: '~s' },
        ...(log && { scale: { type: 'log' } }),
      },
      color: {
        ...color,
        legend: { title: null, orient: 'bottom', columns: 3, labelLimit: 0, labelFontSize: 12 },
      },
    },
  };
}
