import uPlot from 'uplot';
import { durationText } from '../duration.ts';

/** What the server has put into `data-chart`. */
interface ChartData {
  readonly unit: 'jobs' | 'ms';
  readonly shape: 'bars' | 'lines';
  readonly times: readonly number[];
  readonly series: readonly {
    readonly label: string;
    readonly tone: string;
    readonly values: readonly (number | null)[];
  }[];
}

const charts = new Map<HTMLElement, { plot: uPlot; data: string }>();
const HEIGHT = 170;

/** A colour of the style sheet, in the scheme that is shown. */
function colour(name: string): string {
  const probe = document.createElement('i');
  probe.className = `probe-${name}`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function draw(): void {
  for (const [holder, { plot }] of charts) {
    if (holder.isConnected) continue;
    plot.destroy();
    charts.delete(holder);
  }
  for (const holder of document.querySelectorAll<HTMLElement>('[data-chart]')) {
    const data = holder.dataset.chart ?? '';
    const known = charts.get(holder);
    if (known?.data === data) continue;
    const chart: ChartData = JSON.parse(data);
    if (known !== undefined) {
      known.data = data;
      known.plot.setData(valuesOf(chart));
      continue;
    }
    holder.replaceChildren();
    charts.set(holder, {
      plot: new uPlot(optionsOf(chart, holder.clientWidth), valuesOf(chart), holder),
      data,
    });
  }
}

/** Layers stand on each other, so each is drawn up to the sum of those below it, the highest first. */
function valuesOf({ shape, times, series }: ChartData): uPlot.AlignedData {
  if (shape === 'lines') return [[...times], ...series.map(({ values }) => [...values])];
  const sums = series.map((_, index) =>
    times.map((_, at) => series.slice(0, index + 1).reduce((sum, { values }) => sum + (values[at] ?? 0), 0)),
  );
  return [[...times], ...sums.reverse()];
}

function optionsOf({ unit, shape, times, series }: ChartData, width: number): uPlot.Options {
  const text = (value: number | null) =>
    value === null ? '–' : unit === 'ms' ? durationText(value) : String(Math.round(value));
  const axis = {
    stroke: colour('muted'),
    grid: { stroke: colour('line'), width: 1 },
    ticks: { show: false },
  };
  const bars =
    shape === 'bars' ? uPlot.paths.bars?.({ size: [0.72, 24], align: 1, radius: 0.15 }) : undefined;
  const [first = 0, second = first] = times;
  const step = second - first;
  const drawn = shape === 'bars' ? [...series].reverse() : series;
  return {
    width,
    height: HEIGHT,
    padding: [8, 4, 0, 0],
    cursor: { sync: { key: 'time' }, drag: { x: false, y: false }, points: { show: shape === 'lines' } },
    // A bar begins at its time, and the newest one needs room behind the last.
    scales: {
      x: { time: true, range: (_, min, max) => [min, shape === 'bars' ? max + step : max] },
      y: { range: (_, __, max) => [0, Math.max(1, max * 1.05)] },
    },
    axes: [
      { ...axis, grid: { show: false }, size: 28, space: 70, values: (_, times) => times.map(clock) },
      { ...axis, size: 56, space: 34, values: (_, values) => values.map(text) },
    ],
    legend: {
      show: true,
      markers: { width: 0, fill: (_, index) => colour(drawn[index - 1]?.tone ?? 'muted') },
    },
    series: [
      { label: 'time', value: (_, time) => (time === null ? '–' : clock(time)) },
      ...drawn.map(
        ({ label, tone }): uPlot.Series => ({
          label,
          stroke: colour(tone),
          width: shape === 'bars' ? 0 : 2,
          points:
            shape === 'bars' ? { show: false } : { show: true, filter: alone, size: 6, fill: colour(tone) },
          // What is told of a layer is its own value, not the sum that it is drawn to, as of the last update.
          value: ({ data }, drawn, index, at) => {
            const below = shape === 'bars' && at !== null ? (data[index + 1]?.[at] ?? 0) : 0;
            return text(at === null || drawn === null ? null : drawn - below);
          },
          ...(bars !== undefined && { fill: colour(tone), paths: bars }),
        }),
      ),
    ],
  };
}

/** The values without a neighbour, as in an app's first minutes: a line through one alone is not seen. */
function alone(plot: uPlot, series: number): number[] {
  const values = plot.data[series] ?? [];
  const isNone = (at: number) => (values[at] ?? null) === null;
  return [...values.keys()].filter((at) => !isNone(at) && isNone(at - 1) && isNone(at + 1));
}

function clock(seconds: number): string {
  const at = new Date(seconds * 1_000);
  return `${String(at.getHours()).padStart(2, '0')}:${String(at.getMinutes()).padStart(2, '0')}`;
}

function redraw(): void {
  for (const { plot } of charts.values()) plot.destroy();
  charts.clear();
  draw();
}

let width = innerWidth;
addEventListener('resize', () => {
  if (width === innerWidth) return;
  width = innerWidth;
  redraw();
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
document.addEventListener('morphed', draw);
draw();
