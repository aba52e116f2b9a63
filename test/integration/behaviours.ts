import { sql } from 'drizzle-orm';
import type { Database } from 'drizzle-queue';
import type { QueryBuilders } from 'drizzle-queue/skip-locked';
import { afterAll, beforeAll, test } from 'vitest';
import { citusMigration } from '../support/citus.ts';
import { controlStatements, workflowsStatements } from '../support/control-tables.ts';
import { allBehaviours } from './behaviours/all.ts';
import { type Need, rowsOf } from './behaviours/behaviour.ts';
import { type Companions, startCompanions } from './behaviours/companions.ts';
import { endConnections } from './behaviours/end-connections.ts';

/** Where the tests of {@link behaviours} run. */
export interface BehaviourOptions {
  /** The URL of the database, whose connections are then ended in some of the tests. @default none are ended */
  readonly url?: () => string;
  /** What the driver cannot do. @default nothing */
  readonly lacks?: readonly Need[];
  /** How many workers run on the client: those of the behaviours, and as many beside them as that leaves. @default 1 */
  readonly workers?: number;
}

/**
 * A test for each behaviour of the library, on a database with its tables; creates those of limits, schedules and workflows. `npm run test:matrix` shows the same on all
 * drivers, servers and versions of Node.js.
 */
export function behaviours(
  database: () => Database & QueryBuilders,
  { url, lacks = [], workers = 1 }: BehaviourOptions = {},
): void {
  const lacking = new Set<Need>(['batches', 'no session', ...lacks]);
  lacking.add(lacking.has('listening') ? 'session' : 'no listening');
  if (!lacking.has('transactions')) lacking.add('no transactions');
  if (url === undefined) lacking.add('server');
  let companions: Companions | undefined;
  beforeAll(async () => {
    const distribute = (await isCitus(database())) ? [citusMigration('of control tables on Citus')] : [];
    for (const text of [...(await controlStatements()), ...distribute, ...(await workflowsStatements())]) {
      for (const statement of text.split('--> statement-breakpoint'))
        await database().execute(sql.raw(statement));
    }
    companions = await startCompanions(database(), workers - 1);
  });
  afterAll(() => companions?.stop());
  for (const { name, needs = [], run } of allBehaviours) {
    test.skipIf(needs.some((need) => lacking.has(need)))(name, { timeout: 120_000 }, async ({ skip }) => {
      skip(needs.includes('groups') && (await isCitus(database())), 'Citus refuses the claims of groups');
      await run({
        db: database(),
        companions: workers - 1,
        endConnections: () => endConnections(url?.() ?? ''),
      });
    });
  }
}

async function isCitus(db: Database): Promise<boolean> {
  return rowsOf(await db.execute(sql`select from pg_extension where extname = 'citus'`)).length > 0;
}
