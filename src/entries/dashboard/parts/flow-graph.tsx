import type { FlowGroup } from '../../../index.ts';
import { countText } from '../duration.ts';
import { layoutOf, lineOf, NODE } from '../flow-layout.ts';
import { h } from '../html.ts';
import type { Visit } from '../visit.ts';
import { visible } from './text.tsx';

/** Of its natural size, in percent. */
export const ZOOMS = [25, 50, 75, 100, 150] as const;

/** More lines than these would be a surface, and not tell anything. */
const MOST_LINES = 5_000;
/** Characters of a kind that a node has room for, alone and beside a count. */
const MOST_LETTERS = 23;
const PAD = 4;

/** How many jobs of a group are in a state; `look` is the class of its colour. */
interface Part {
  readonly count: number;
  readonly text: string;
  readonly look: string;
}

/** The parts of a group: what has ended first. */
export function partsOf({ jobs, pending, failed, states }: FlowGroup): Part[] {
  const part = (count: number, text: string, look = text): Part[] =>
    count > 0 ? [{ count, text, look: `is-${look}` }] : [];
  if (states === undefined) {
    return [
      ...part(jobs - pending - failed, 'completed'),
      ...part(failed, 'failed', 'discarded'),
      ...part(pending, 'not ended', 'waiting'),
    ];
  }
  const known = Object.values(states).reduce((sum, count) => sum + count, 0);
  return [
    ...part(states.completed ?? 0, 'completed'),
    ...part(jobs - known, 'without a result', 'gone'),
    ...part(states.discarded ?? 0, 'discarded'),
    ...part(states.cancelled ?? 0, 'cancelled'),
    ...part(states.running ?? 0, 'running'),
    ...part(states.due ?? 0, 'due'),
    ...part(states.scheduled ?? 0, 'scheduled'),
    ...part(states.waiting ?? 0, 'waiting'),
  ];
}

interface GraphProps {
  readonly visit: Visit;
  readonly groups: readonly FlowGroup[];
  /** The key of the one whose jobs are listed. */
  readonly chosen: string | undefined;
  /** In percent, or as wide as the page. */
  readonly zoom: number | 'fit';
  /** Where the jobs of a group are listed. */
  readonly listOf: (key: string) => string;
}

/** A flow as boxes in layers, which need no script: each is a link to its job, or to the list of its jobs. */
export function Graph({ visit, groups, chosen, zoom, listOf }: GraphProps) {
  const { places, width, height } = layoutOf(groups);
  const [all, high] = [width + 2 * PAD, height + 2 * PAD];
  const byKey = new Map(groups.map((group) => [group.key, group]));
  const lines: Record<'cancel' | 'run', string[]> = { cancel: [], run: [] };
  for (const { key, after, onFailure = 'cancel' } of groups) {
    const to = places.get(key);
    for (const before of after) {
      const from = places.get(before);
      if (from !== undefined && to !== undefined && lines.cancel.length + lines.run.length < MOST_LINES)
        lines[onFailure].push(lineOf(from, to));
    }
  }
  const scale = zoom === 'fit' ? 1 : zoom / 100;
  return (
    <figure class="flow" id="graph" aria-label="The jobs of the flow">
      {/* biome-ignore lint/a11y/noSvgWithoutTitle: each box in it has one */}
      <svg
        viewBox={`${-PAD} ${-PAD} ${all} ${high}`}
        width={Math.round(all * scale)}
        height={Math.round(high * scale)}
        class={zoom === 'fit' ? 'is-fit' : undefined}
      >
        <path class="flow-line" d={lines.cancel.join('')} />
        <path class="flow-line is-run" d={lines.run.join('')} />
        {groups.map((group) => {
          const { x = 0, y = 0 } = places.get(group.key) ?? {};
          const names = group.after.flatMap((key) => byKey.get(key)?.kind ?? []);
          const { jobs, firstId } = group;
          const to = jobs === 1 && firstId !== undefined ? visit.links.job(firstId) : listOf(group.key);
          return <Node group={group} x={x} y={y} to={to} after={names} chosen={group.key === chosen} />;
        })}
      </svg>
    </figure>
  );
}

interface NodeProps {
  readonly group: FlowGroup;
  readonly x: number;
  readonly y: number;
  readonly to: string;
  /** The kinds before it. */
  readonly after: readonly string[];
  readonly chosen: boolean;
}

function Node({ group, x, y, to, after, chosen }: NodeProps) {
  const { key, kind, jobs, firstId } = group;
  const parts = partsOf(group);
  const name = visible(kind ?? 'no longer known');
  const count = jobs === 1 ? (firstId === undefined ? '' : `#${firstId}`) : `× ${countText(jobs)}`;
  const said = parts.map((part) => (jobs === 1 ? part.text : `${countText(part.count)} ${part.text}`));
  const from = after.length === 0 ? '' : `; after ${visible([...new Set(after)].slice(0, 5).join(', '))}`;
  let left = 12;
  return (
    <a href={to} id={`group-${key}`} aria-current={chosen ? 'true' : undefined}>
      <svg x={x} y={y} width={NODE.width} height={NODE.height} class={toneOf(group)}>
        <title>{`${name} ${count}: ${said.join(', ')}${from}`}</title>
        {/* biome-ignore lint/a11y/noAriaHiddenOnFocusable: nothing in it takes the focus */}
        <g aria-hidden="true">
          <rect class="flow-box" x={1} y={1} width={NODE.width - 2} height={NODE.height - 2} rx={9} />
          <text class="flow-kind" x={12} y={22}>
            {shortened(name, MOST_LETTERS - count.length)}
          </text>
          <text class="flow-count" x={NODE.width - 12} y={22}>
            {count}
          </text>
          <text class="flow-said" x={12} y={41}>
            {shortened([...said.filter(isBad), ...said.filter((text) => !isBad(text))].join(', '), 29)}
          </text>
          {parts.map((part) => {
            const wide = ((NODE.width - 24) * part.count) / jobs;
            left += wide;
            return (
              <rect
                class={`flow-part ${part.look}`}
                x={(left - wide).toFixed(1)}
                y={NODE.height - 13}
                width={Math.max(1.5, wide).toFixed(1)}
                height={4}
              />
            );
          })}
        </g>
      </svg>
    </a>
  );
}

/** What matters stands first, where there is no room for all. */
function isBad(text: string): boolean {
  return /(discarded|cancelled|failed)$/.test(text);
}

/** The colour of what matters most about a group. */
function toneOf({ failed, pending, states }: FlowGroup): string {
  if (failed > 0) return (states?.discarded ?? failed) > 0 ? 'is-discarded' : 'is-cancelled';
  if (pending === 0) return 'is-completed';
  const { running = 0, due = 0 } = states ?? {};
  return running > 0 ? 'is-running' : due > 0 ? 'is-due' : 'is-waiting';
}

function shortened(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
