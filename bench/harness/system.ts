import type { Sql } from 'postgres';
import type { ProgramName } from '../child/programs.ts';
import type { Drained, DrainLoad } from './drain-jobs.ts';
import type { Site } from './site.ts';

/** Jobs to put in. Their payload is `{ n, pad }`: the job's number from `from` on, and as many letters as make up the size. */
export interface Fill {
  readonly from: number;
  readonly count: number;
  /** The size of the payload as JSON text, in bytes. */
  readonly payloadBytes: number;
}

/** A queue, ours or a peer's, set up in one particular way. */
export interface System {
  /** Such as `graphile-worker, best`. */
  readonly name: string;
  /** How it is set up, for below a table. */
  readonly setup: string;
  /** What works its jobs off, in a process of its own. */
  readonly program: ProgramName;
  readonly options: unknown;
  /** The table that jobs wait in, as SQL. */
  readonly table: string;
  /** A smaller share of the jobs than others get, for one that would take minutes. @default 1 */
  readonly share?: number;
  /** Creates its tables, with the tuning that its documentation recommends. */
  create(url: string): Promise<void>;
  /** Puts jobs in, in one transaction where it can, by the fastest way that it has. */
  fill(site: SystemSite, fill: Fill): Promise<void>;
  /** Whether a job waits or runs. */
  anyLeft(sql: Sql): Promise<boolean>;
  /** Works off and measures by itself, instead of by its program. */
  drain?(site: Site, load: DrainLoad): Promise<Drained>;
}

/** Where a system lives while it is measured. */
export interface SystemSite {
  readonly url: string;
  readonly sql: Sql;
}

/** Letters beside the number of a job, so that the payload has about so many bytes. */
export function padBytes(payloadBytes: number): number {
  return Math.max(payloadBytes - '{"n": 12345, "pad": ""}'.length, 0);
}

/** A no-op's payload: small, as most are. */
export const SMALL = 40;
/** A payload that is still stored within its row. */
export const LARGE = 1_500;
