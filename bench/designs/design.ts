import type { connect, Db } from '../../examples/seeds/stage/database.ts';

/** What came of asking for a job: it was done; it was lost to another consumer, so ask again; there was none. */
export type Outcome = 'done' | 'retry' | 'empty';

/** What a design works with while it is measured. */
export interface Site {
  /** One per consumer, each on a connection of its own. */
  readonly connections: readonly Db[];
  /** A pool of connections, for a design that shares them among its consumers. */
  readonly pool: ReturnType<typeof connect>['db'];
  /** The work of one job. */
  work(): Promise<void>;
  /** To be called once per asking. */
  count(outcome: Outcome): void;
}

/** One way to hand out jobs, in a database of its own. */
export interface Design {
  readonly name: string;
  /** Creates its tables. */
  create(db: Db, url: string): Promise<unknown>;
  /** Puts `count` jobs in. */
  add(db: Db, count: number): Promise<unknown>;
  /** Throws all jobs and results away. */
  clear(db: Db): Promise<unknown>;
  /** Begins to work. What it answers ends the work, and resolves when nothing of it runs any more. */
  start(site: Site): Promise<() => Promise<void>>;
}

/** The `start` of a design whose consumers each do one job after the other. */
export function oneByOne(doOne: (db: Db, work: () => Promise<void>) => Promise<Outcome>): Design['start'] {
  return async ({ connections, work, count }) => {
    let ended = false;
    const consumers = connections.map(async (db) => {
      while (!ended) count(await doOne(db, work));
    });
    return async () => {
      ended = true;
      await Promise.all(consumers);
    };
  };
}
