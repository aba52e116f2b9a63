import { load, options, slowly, untilAsked } from './package.mjs';

const { createPostgresBackend, FlowProducer, Queue, runMigrations, Worker } = await load('bullmq');
const { command, url, redisUrl, failing, jobs } = options;
const connection =
  redisUrl === undefined ? { connectionString: url } : { url: redisUrl, maxRetriesPerRequest: null };
const backend = redisUrl === undefined ? [createPostgresBackend] : [];
const QUEUE = options.queue;

async function migrate() {
  if (redisUrl !== undefined) return;
  const { default: pg } = await load('pg');
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await runMigrations(client);
  await client.end();
}

if (command === 'fill') {
  await migrate();
  const queue = new Queue(QUEUE, { connection }, ...backend);
  const spec = ({ n, priority, dueAt }) => ({
    name: 'mail',
    data: { n },
    opts: {
      priority,
      attempts: 5,
      backoff: { type: 'fixed', delay: 3_600_000 },
      ...(dueAt !== undefined && { delay: dueAt - Date.now() }),
    },
  });
  await queue.addBulk(failing.map(spec));
  if (failing.length > 0) {
    let failed = 0;
    const all = Promise.withResolvers();
    const fail = async () => {
      throw new Error('on purpose');
    };
    const worker = new Worker(QUEUE, fail, { connection, concurrency: 20 }, ...backend);
    worker.on('failed', () => {
      if (++failed === failing.length) all.resolve();
    });
    await all.promise;
    await worker.close();
  }
  for (let from = 0; from < jobs.length; from += 1_000)
    await queue.addBulk(jobs.slice(from, from + 1_000).map(spec));
  for (const { queue: name, data, send } of options.others ?? []) await queue.add(name, data, send ?? {});
  if (options.flow) {
    const flows = new FlowProducer({ connection }, ...backend);
    const child = { name: 'mail', queueName: QUEUE, data: { n: 7 } };
    await flows.add({ name: 'mail', queueName: QUEUE, data: { n: 6 }, children: [child] });
    await flows.close();
    await queue.upsertJobScheduler('hourly', { every: 3_600_000 }, { name: 'mail', data: { n: 8 } });
  }
  await queue.close();
} else {
  const done = ({ data }) => slowly(data.n);
  const worker = new Worker(QUEUE, done, { connection, concurrency: 5 }, ...backend);
  await untilAsked();
  await worker.close();
}
process.exit();
