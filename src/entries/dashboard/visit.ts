import type { Limits, Schedules, Workflows } from '../../index.ts';
import type { DashboardAction, Granted } from './access.ts';
import type { Links } from './links.ts';
import type { Looks } from './looks.ts';
import type { DashboardSettings } from './options.ts';
import type { Searches } from './searches.ts';
import { type JobOfValue, type ShownField, shownText } from './show.ts';

/** One authorized request for a page or an action. */
export interface Visit {
  readonly settings: DashboardSettings;
  readonly links: Links;
  readonly granted: Granted;
  readonly looks: Looks;
  readonly searches: Searches;
  /** The viewer, for whom searches take turns: their name, or their session where they have none. */
  readonly viewer: string;
  /** The path in the dashboard, with its query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly nowMs: number;
}

/** How long one look at the database may take. */
export const LOOK_MS = 2_000;

export function may(visit: Visit, action: DashboardAction): boolean {
  return visit.granted.actions.has(action);
}

/** Whether a queue as a whole, and not some jobs in it, is theirs. */
export function hasQueue({ granted: { scope } }: Visit, queue: string): boolean {
  return scope.own.length === 0 && (scope.queues?.includes(queue) ?? true);
}

/** Says what some scope sees, for what is kept of it. */
export function scopeName({ granted: { scope } }: Visit): string {
  return JSON.stringify([scope.queues ?? null, scope.own.map(({ column, text }) => [column.key, text])]);
}

/** The queue's schedules, if it has any and they may be seen. */
export function schedulesOf({ settings, granted }: Visit): Schedules | undefined {
  // createQueue sets it to what schedulesIn() made, or leaves it out.
  return granted.scope.own.length > 0 ? undefined : (settings.queue.schedules as Schedules | undefined);
}

/** The queue's limits, if it has any and they may be seen. */
export function limitsOf({ settings, granted }: Visit): Limits | undefined {
  // createQueue sets it to what limitsIn() made, or leaves it out.
  return granted.scope.own.length > 0 ? undefined : (settings.queue.limits as Limits | undefined);
}

/** The queue's workflows, if it has any. */
export function workflowsOf({ settings }: Visit): Workflows | undefined {
  // createQueue sets it to what workflowsIn() made, or leaves it out.
  return settings.queue.workflows as Workflows | undefined;
}

/** A value of a row, and which it is. */
interface RevealedValue {
  readonly text: string;
  readonly cut?: boolean;
  readonly column?: string | undefined;
  readonly step?: string | undefined;
}

/** A value as it may be shown; `null` when it is hidden. */
export function revealed(
  { settings, granted }: Visit,
  job: JobOfValue | undefined,
  field: ShownField['field'],
  { cut = false, ...value }: RevealedValue,
): string | null {
  const of = job && { id: job.id, kind: job.kind, queue: job.queue, own: job.own };
  return shownText(settings.show, { job: of, field, cut, access: granted.access, ...value });
}

/** Whether a value is shown as it is, so that links and forms may contain it. */
export function isPlain(
  visit: Visit,
  job: JobOfValue | undefined,
  field: ShownField['field'],
  value: RevealedValue,
): boolean {
  return revealed(visit, job, field, value) === value.text;
}

/** A value as the audit of an action names it. */
export function audited(
  visit: Visit,
  job: JobOfValue | undefined,
  field: ShownField['field'],
  text: string,
): string {
  return revealed(visit, job, field, { text }) ?? 'hidden';
}
