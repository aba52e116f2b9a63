import type { Limits } from '../limits/limits.ts';
import type { Schedules } from '../schedules/schedules.ts';
import type { JobLine } from '../sql/job-line.ts';
import type { DashboardAction, Granted } from './access.ts';
import type { Links } from './links.ts';
import type { Looks } from './looks.ts';
import type { DashboardSettings, ShownField } from './options.ts';

/** One authorized request for a page or an action. */
export interface Visit {
  readonly settings: DashboardSettings;
  readonly links: Links;
  readonly granted: Granted;
  readonly looks: Looks;
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

/** A value of a job as it may be shown; `null` when it is hidden. */
export function revealed(
  { settings, granted }: Visit,
  job: Pick<JobLine, 'id' | 'kind' | 'queue' | 'own'>,
  field: ShownField['field'],
  { text, cut }: { readonly text: string; readonly cut: boolean },
): string | null {
  if (settings.show === undefined) return text;
  const { id, kind, queue, own } = job;
  const shown = settings.show({ job: { id, kind, queue, own }, field, text, cut, access: granted.access });
  // A function that forgets to return something hides it.
  return typeof shown === 'string' ? shown : null;
}
