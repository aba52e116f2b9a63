import { h } from '../html.ts';
/** One line, or one layer of bars, of a chart. */
export interface Series {
  readonly label: string;
  readonly tone: 'good' | 'bad' | 'plain' | 'busy' | 'later';
  /** A value for each time; `null` where there is none. */
  readonly values: readonly (number | null)[];
}

interface ChartProps {
  readonly id: string;
  readonly title: string;
  readonly note?: string;
  readonly unit: 'jobs' | 'ms';
  readonly shape: 'bars' | 'lines';
  /** Seconds since 1970, in order. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
}

const WIDTH = 600;
const HEIGHT = 150;

/**
 * A chart of some series over time: an image without the script, which replaces it by one that can be
 * pointed at.
 */
export function Chart({ id, title, note, unit, shape, times, series }: ChartProps) {
  const data = JSON.stringify({ unit, shape, times, series });
  const label = `${title}: ${series.map((each) => `${each.label} ${newestOf(each)}`).join(', ')}`;
  return (
    <figure class="chart card" id={id}>
      <figcaption>
        <h2>{title}</h2>
        <ul class="legend" aria-hidden="true">
          {series.map((each) => (
            <li class={`tone-${each.tone}`}>{each.label}</li>
          ))}
        </ul>
      </figcaption>
      <div class="plot" data-chart={data} role="img" aria-label={label}>
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
          {shape === 'bars' ? <Bars series={series} /> : <Lines series={series} />}
        </svg>
      </div>
      {note === undefined ? null : <p class="note">{note}</p>}
    </figure>
  );
}

function newestOf({ values }: Series): string {
  const newest = values.findLast((value) => value !== null);
  return newest === undefined || newest === null ? 'none' : String(Math.round(newest * 10) / 10);
}

function Bars({ series }: { readonly series: readonly Series[] }) {
  const count = series[0]?.values.length ?? 0;
  const sums = Array.from({ length: count }, (_, index) =>
    sum(series.map(({ values }) => values[index] ?? 0)),
  );
  const top = Math.max(1, ...sums);
  const step = WIDTH / Math.max(1, count);
  return (
    <g>
      {sums.flatMap((_, index) => {
        let below = 0;
        return series.map(({ values, tone }) => {
          const height = ((values[index] ?? 0) / top) * HEIGHT;
          if (height === 0) return null;
          below += height;
          return (
            <rect
              class={`fill-${tone}`}
              x={round(index * step)}
              y={round(HEIGHT - below)}
              width={round(step * 0.75)}
              height={round(height)}
            />
          );
        });
      })}
    </g>
  );
}

function Lines({ series }: { readonly series: readonly Series[] }) {
  const top = Math.max(1, ...series.flatMap(({ values }) => values.map((value) => value ?? 0)));
  return (
    <g>
      {series.map(({ values, tone }) => {
        const step = WIDTH / Math.max(1, values.length - 1);
        const points = values.flatMap((value, index) =>
          value === null ? [] : [`${round(index * step)},${round(HEIGHT - (value / top) * (HEIGHT - 4))}`],
        );
        // A line of one point is not drawn; one back to itself is a dot.
        const drawn = points.length === 1 ? [...points, ...points] : points;
        return <polyline class={`line-${tone}`} points={drawn.join(' ')} />;
      })}
    </g>
  );
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function round(value: number): string {
  return value.toFixed(1);
}
