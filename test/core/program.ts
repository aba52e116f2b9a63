/** Shows the behaviours of the core on the database of `DATABASE_URL`, and prints a line of JSON for each. */
import { inspect } from 'node:util';
import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import { aging } from '../integration/behaviours/aging.ts';
import { batching } from '../integration/behaviours/batching.ts';
import type { Need } from '../integration/behaviours/behaviour.ts';
import { endConnections } from '../integration/behaviours/end-connections.ts';
import { enqueueing } from '../integration/behaviours/enqueueing.ts';
import { sessions } from '../integration/behaviours/sessions.ts';
import { transactional } from '../integration/behaviours/transactional.ts';
import { uniqueKeys } from '../integration/behaviours/unique-keys.ts';
import { waking } from '../integration/behaviours/waking.ts';
import { working } from '../integration/behaviours/working.ts';

const url = process.env.DATABASE_URL ?? '';
/** What postgres.js on a server of its own has no need for, or cannot do. */
const LACKING: readonly Need[] = ['batches', 'no session', 'no listening', 'no transactions'];
const behaviours = [
  ...enqueueing,
  ...uniqueKeys,
  ...batching,
  ...working,
  ...transactional,
  ...waking,
  ...sessions,
  ...aging,
].filter(({ needs = [] }) => !needs.some((need) => LACKING.includes(need)));

const client = postgres(url, { max: 5, onnotice: () => undefined });
const site = { db: drizzle({ client }), companions: 0, endConnections: () => endConnections(url) };
for (const { name, run } of behaviours) {
  const failed = await run(site).then(() => undefined, inspect);
  console.log(JSON.stringify({ name, ...(failed !== undefined && { failed }) }));
}
await client.end();
