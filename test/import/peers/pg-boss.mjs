import { load, options, say, untilAsked } from './package.mjs';

const { PgBoss } = await load('pg-boss');
const { command, url, failing, jobs } = options;
const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false });
boss.on('error', () => undefined);
await boss.start();

if (command === 'fill') {
  const settings = { retryLimit: 4, retryDelay: 3_600 };
  await boss.createQueue('mail', settings);
  await boss.createQueue('unknown', settings);
  await boss.createQueue('only', { ...settings, policy: 'exclusive' });
  await boss.createQueue('queued', { ...settings, policy: 'short' });
  await boss.createQueue('serial', { ...settings, policy: 'singleton' });
  await boss.createQueue('stately', { ...settings, policy: 'stately' });
  const toInsert = ({ n, priority, dueAt }) => ({
    data: { n },
    priority: -priority,
    ...(dueAt !== undefined && { startAfter: new Date(dueAt) }),
  });
  if (failing.length > 0) {
    await boss.insert('mail', failing.map(toInsert));
    const fetched = await boss.fetch('mail', { batchSize: failing.length });
    const ids = fetched.map(({ id }) => id);
    await boss.fail('mail', ids, { reason: 'on purpose' });
  }
  await boss.insert('mail', jobs.map(toInsert));
  for (const { queue, data, send } of options.others ?? []) await boss.send(queue, data, send ?? {});
} else {
  await boss.work('mail', { batchSize: 20, pollingIntervalSeconds: 0.5 }, async (batch) => {
    for (const { data } of batch) say(data.n);
  });
  await untilAsked();
}
await boss.stop({ graceful: true });
process.exit();
