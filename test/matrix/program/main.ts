/** Shows all behaviours on one driver, one after the other, and prints a line of JSON for each; then it ends by itself. */
import { inspect } from 'node:util';
import { allBehaviours } from '../../integration/behaviours/all.ts';
import { startCompanions } from '../../integration/behaviours/companions.ts';
import { endConnections } from '../../integration/behaviours/end-connections.ts';
import type { Driver } from '../combinations.ts';
import type { Report, Request } from '../report.ts';
import { openDriver } from './open-driver.ts';

const LIMIT_MS = 90_000;

// The process that started this one has written it.
const request = JSON.parse(process.env.MATRIX_REQUEST ?? '{}') as Request;
const { db, offers, close } = await openDriver[request.driver satisfies Driver](request);
const site = { db, companions: request.workers - 1, endConnections: () => endConnections(request.url) };
const companions = await startCompanions(db, request.workers - 1);
for (const { name, needs = [], run } of allBehaviours) {
  const lack = needs.find((need) => !offers.includes(need));
  if (lack !== undefined) {
    print({ name, skipped: lack });
    continue;
  }
  const startedAt = performance.now();
  try {
    await within(LIMIT_MS, run(site));
    print({ name, durationMs: Math.round(performance.now() - startedAt) });
  } catch (error) {
    print({ name, error: inspect(error) });
  }
}
try {
  await companions.stop();
} catch (error) {
  print({ name: 'nobody is declared gone', error: inspect(error) });
}
await close();
print({ name: 'closes', durationMs: 0 });

function print(report: Report): void {
  console.log(`${JSON.stringify(report)}`);
}

async function within(limitMs: number, running: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${limitMs} ms`)), limitMs);
  });
  try {
    await Promise.race([running, late]);
  } finally {
    clearTimeout(timer);
  }
}
