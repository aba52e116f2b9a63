import { describe, expect, test } from 'vitest';
import { until } from '../support/until.ts';
import { startDemo } from './demo-process.ts';

// The demo uses drizzle-orm 0.45 whatever this run was started for.
describe.skipIf(process.env.DRIZZLE === 'v1')('npm run demo', () => {
  test('takes orders, works them off, and proves that everything adds up', { timeout: 180_000 }, async () => {
    const demo = startDemo();
    expect(await demo.ended(), demo.output()).toBe(0);

    const output = demo.output();
    expect(output).toMatch(/PostgreSQL \d+\.\d+ is up/);
    expect(output).toMatch(
      /\d+ orders, +\d+ declined · +\d+ receipts, +\d+ to retry · +\d+ parcels, +\d+ to retry/,
    );
    // Not a terminal: nothing that moves a cursor or gives colours.
    expect(output).not.toContain('\x1b');

    const stories = tableUnder(output, 'Orders joined to the results of their jobs');
    expect(stories).toContainEqual(
      expect.stringMatching(
        /^\d+ +\S+@greylist\.example +\d \w+ +completed +2 +msg-\S+ +completed +\d +box-\S+$/,
      ),
    );
    expect(stories).toContainEqual(
      expect.stringMatching(/^\d+ +nobody@void\.example +\d \w+ +discarded +1 +– +completed +\d +box-\S+$/),
    );

    expect(tableUnder(output, 'How the jobs ended').map((row) => row.replace(/ +/g, ' '))).toEqual([
      'kind state attempts jobs last error',
      'pack-order completed 1 210 –',
      'pack-order completed 2 60 The vase broke while it was packed',
      'send-receipt completed 1 200 –',
      'send-receipt completed 2 49 451 Try again later',
      'send-receipt completed 3 20 451 Try again later',
      'send-receipt discarded 1 1 550 No such mailbox',
    ]);

    expect(tableUnder(output, 'Which worker did them')).toHaveLength(1 + 2);

    const latencies = tableUnder(output, 'How long it took, in milliseconds').slice(1);
    expect(latencies).toHaveLength(4);
    for (const row of latencies) {
      const [p50 = 0, p95 = 0, p99 = 0, max = 0] = row.split(/ +/).slice(-4).map(Number);
      expect([p50, p95, p99, max]).toEqual([p50, p95, p99, max].toSorted((a, b) => a - b));
      expect(max).toBeGreaterThan(0);
    }

    const checks = tableUnder(output, 'Does it add up?').slice(1);
    expect(checks).toHaveLength(21);
    for (const check of checks) expect(check).toMatch(/^✓/);
    expect(output).toMatch(
      /Everything adds up: 270 orders were committed with their 540 jobs, 30 declined ones left nothing behind,\s150 failed attempts were .* exactly once\.\s*$/,
    );
    await until(async () => (await demo.processes()).length === 0);
  });

  test('--dashboard shows its queues, and keeps the page open until Ctrl-C', {
    timeout: 180_000,
  }, async () => {
    const demo = startDemo({}, ['--dashboard']);
    const url = await until(async () => /http:\S+\/admin\/queue/.exec(demo.output())?.[0], {
      timeoutMs: 60_000,
    });
    const page = await fetch(`${url}/queues`);
    expect(await page.text()).toContain('warehouse');
    await until(async () => demo.output().includes('until Ctrl-C'), { timeoutMs: 60_000 });
    expect(await (await fetch(`${url}/jobs?state=discarded`)).text()).toContain('send-receipt');
    // Figures of so few jobs are seconds old, and wait for the workers' last reports.
    await until(async () => (await (await fetch(url ?? '')).text()).includes('Completed</span><b>539</b>'), {
      timeoutMs: 60_000,
    });
    demo.kill('SIGINT');
    expect(await demo.ended(), demo.output()).toBe(130);
    expect(demo.output()).toContain('Everything adds up');
    await until(async () => (await demo.processes()).length === 0);
  });
});

/** The rows of the table under a heading, its header first. */
function tableUnder(output: string, heading: string): string[] {
  const lines = output.split('\n');
  const start = lines.findIndex((line) => line.startsWith(heading));
  expect(start, `the heading '${heading}' in ${output}`).toBeGreaterThanOrEqual(0);
  const end = lines.indexOf('', start);
  return lines
    .slice(start + 1, end)
    .map((line) => line.trim())
    .filter((line) => !line.startsWith('─'));
}
