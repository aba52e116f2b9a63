import type { Fleet } from './fleet.ts';
import type { ProcessEntry } from './run-log.ts';

/** From the end of a handler until its worker knew that the end is written. */
export interface Settling {
  readonly job: number;
  readonly fromMs: number;
  readonly toMs: number;
}

/** Of every attempt whose end was written, by a worker that lived to hear of it. */
export function settlings(fleet: Fleet): Settling[] {
  const ended = new Map<string, ProcessEntry>();
  const found: Settling[] = [];
  for (const entry of fleet.entries()) {
    const { event, process, job = 0, fence, atMs } = entry;
    const attempt = `${process} ${job}/${fence}`;
    if (event === 'ended') ended.set(attempt, entry);
    const end = ended.get(attempt);
    if (end === undefined || (event !== 'settled' && event !== 'rescheduled')) continue;
    found.push({ job, fromMs: end.atMs, toMs: atMs });
  }
  return found;
}

/** How long each of them took, the shortest first. */
export function durations(of: readonly Settling[]): number[] {
  return of.map(({ fromMs, toMs }) => toMs - fromMs).sort((a, b) => a - b);
}

/** The value that so much of all is below. */
export function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? Number.NaN;
}
