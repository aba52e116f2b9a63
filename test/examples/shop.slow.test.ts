import { setTimeout as delay } from 'node:timers/promises';
import postgres from 'postgres';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
// For the type of what `inject` returns.
import type {} from '../support/global-setup.ts';
import { until } from '../support/until.ts';
import { startDemo } from './demo-process.ts';

// The demo uses drizzle-orm 0.45 whatever this run was started for.
describe.skipIf(process.env.DRIZZLE === 'v1')('npm run demo', () => {
  test('ends with 1 when a single number does not add up, and drops its database', {
    timeout: 120_000,
  }, async () => {
    const { url } = inject('testServer');
    const demo = startDemo({ DATABASE_URL: url });
    await shopOpens(demo);
    const database = await demo.database(url);
    await connect(Object.assign(new URL(url), { pathname: database ?? '' }).href)`
      update products set stock = stock - 1 where sku = 'mug'`;

    expect(await demo.ended(), demo.output()).toBe(1);
    expect(demo.output()).toMatch(/✗ +Stock taken .* 120, 150, 120, 150 +121, 150, 120, 150\n/);
    expect(demo.output()).toContain('1 of 21 numbers do not add up.');
    expect(await connect(url)`select from pg_database where datname = ${String(database)}`).toHaveLength(0);
  });
});

// Processes are found in /proc.
describe.skipIf(process.env.DRIZZLE === 'v1' || process.platform !== 'linux')(
  'npm run demo leaves no process',
  () => {
    test('after Ctrl-C', { timeout: 120_000 }, async () => {
      const demo = startDemo();
      await shopOpens(demo);
      const processes = await demo.processes();
      // So that the empty list below means something.
      expect(processes.filter(({ command }) => command.includes('worker.ts'))).toHaveLength(2);

      // On a busy machine the demo may hear of it late, and must not be killed for that by what has started it.
      const shop = processes.filter(({ command }) => /^[^\0]*node\0.*demo\.ts/.test(command));
      expect(shop).toHaveLength(1);
      for (const { pid } of shop) process.kill(pid, 'SIGSTOP');
      demo.kill('SIGINT');
      await delay(300);
      for (const { pid } of shop) process.kill(pid, 'SIGCONT');
      expect(await demo.ended(), demo.output()).toBe(130);
      // What was printed last may be read a moment after the exit.
      await until(() => demo.output().includes('Stopped by SIGINT'));
      await until(async () => (await demo.processes()).length === 0);
    });

    test('after it was killed', { timeout: 120_000 }, async () => {
      const demo = startDemo();
      await shopOpens(demo);
      demo.kill('SIGKILL');
      await demo.ended();
      await until(async () => (await demo.processes()).length === 0);
    });

    test('after a worker crashed, and ends with 1', { timeout: 120_000 }, async () => {
      const demo = startDemo();
      await shopOpens(demo);
      const pid = Number(/pid (\d+)/.exec(demo.output())?.[1]);
      process.kill(pid, 'SIGKILL');

      expect(await demo.ended(), demo.output()).toBe(1);
      expect(demo.output()).toContain(`Worker process ${pid} ended by itself: SIGKILL`);
      await until(async () => (await demo.processes()).length === 0);
    });
  },
);

/** A server is installed, started and migrated first, which takes long on a busy machine. */
async function shopOpens(demo: ReturnType<typeof startDemo>): Promise<void> {
  await until(() => demo.output().includes('The shop is open'), { timeoutMs: 60_000 });
}

function connect(url: string): postgres.Sql {
  const sql = postgres(url, { max: 1 });
  onTestFinished(() => sql.end({ timeout: 1 }));
  return sql;
}
