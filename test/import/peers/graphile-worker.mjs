import { load, options, slowly, untilAsked } from './package.mjs';

const { Logger, makeWorkerUtils, run, runOnce } = await load('graphile-worker');
const { command, url, failing, jobs } = options;
const logger = new Logger(() => () => undefined);
const common = { connectionString: url, logger, concurrency: 10 };

if (command === 'fill') {
  const utils = await makeWorkerUtils(common);
  await utils.migrate();
  const spec = ({ n, priority, dueAt }) => ({
    identifier: 'mail',
    payload: { n },
    priority,
    maxAttempts: 5,
    ...(dueAt !== undefined && { runAt: new Date(dueAt) }),
  });
  await utils.addJobs(failing.map(spec));
  await runOnce({
    ...common,
    taskList: {
      mail: async () => {
        throw new Error('on purpose');
      },
    },
  });
  await utils.addJobs(jobs.map(spec));
  for (const { queue, data, send } of options.others ?? []) await utils.addJob(queue, data, send ?? {});
  await utils.release();
} else {
  const runner = await run({
    ...common,
    noHandleSignals: true,
    taskList: { mail: async ({ n }) => slowly(n) },
  });
  await untilAsked();
  await runner.stop();
}
process.exit();
