import { checkOptions, namesOf } from '../../core/job/known-options.ts';
import { checkInteger } from '../../core/job/limits.ts';
import { shown } from '../../core/job/shown.ts';
import type { Executor } from '../../core/sql/executor.ts';
import { type FlowState, findFlows, type ListedFlow } from './queries/find-flows.ts';
import type { TablesOfBatches } from './sql/batch-tables.ts';

export type { FlowState, ListedFlow } from './queries/find-flows.ts';

/** The filter of `queue.workflows.flows`. */
export interface FlowFilter {
  /** Only flows that stand there. @default any */
  readonly state?: FlowState | undefined;
  /** The `nextCursor` of the page before. @default the first page */
  readonly cursor?: number | undefined;
  /** 1–1,000 flows a page. @default 50 */
  readonly limit?: number | undefined;
  /**
   * Look at this many flows at most, 1 to 1,000,000, beginning at the `cursor`. Where more are left and the
   * page is not full, it is `truncated`.
   * @default 10_000
   */
  readonly searchLimit?: number | undefined;
}

/** One page of flows, the newest first. */
export interface FlowList {
  readonly flows: readonly ListedFlow[];
  /** For the next page; `undefined` on the last one. */
  readonly nextCursor: number | undefined;
  /**
   * Whether the search has stopped at `searchLimit` before the page was full. Then `nextCursor` goes on with
   * the flows that were not looked at.
   */
  readonly truncated: boolean;
}

const FILTER = namesOf<FlowFilter>({ state: true, cursor: true, limit: true, searchLimit: true });
const FLOW_STATES: readonly FlowState[] = ['open', 'failed', 'completed'];

/** @throws RangeError | TypeError before anything is sent */
export async function listFlows(
  db: Executor,
  tables: TablesOfBatches,
  filter: FlowFilter,
): Promise<FlowList> {
  const { state, cursor, limit = 50, searchLimit = 10_000 } = checkOptions('flows: filter', filter, FILTER);
  if (state !== undefined && !FLOW_STATES.includes(state)) {
    throw new TypeError(`flows: state must be 'open', 'failed' or 'completed', got ${shown(state)}`);
  }
  if (cursor !== undefined) checkInteger('flows: cursor', cursor, 1, Number.MAX_SAFE_INTEGER);
  checkInteger('flows: limit', limit, 1, 1_000);
  checkInteger('flows: searchLimit', searchLimit, 1, 1_000_000);
  const find = { state, before: cursor, limit: limit + 1, searchLimit };
  const { flows: found, searchedTo } = await findFlows(db, tables, find);
  const flows = found.slice(0, limit);
  if (found.length > limit) return { flows, nextCursor: flows.at(-1)?.id, truncated: false };
  return { flows, nextCursor: searchedTo, truncated: searchedTo !== undefined };
}
