import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { start } from './support/run-program.ts';
import { useFixture } from './support/use-fixture.ts';
import { DRIZZLE_MAJORS, DRIZZLE_VERSIONS } from './support/versions.ts';

describe.each(DRIZZLE_MAJORS)('with drizzle-orm %s', (major) => {
  const database = useTestDatabase();
  const project = useFixture('next', [`drizzle-orm@${DRIZZLE_VERSIONS[major]}`]);

  test('route handlers of Next.js enqueue and drain, with no configuration', async () => {
    const env = { DATABASE_URL: database.url, NEXT_TELEMETRY_DISABLED: '1' };
    await project().run('npx', ['next', 'build'], env);
    // Next.js has bundled the library: it is not among the packages that it leaves to Node.js.
    expect(await serverCode(join(project().directory, '.next/server'))).toContain('drizzle-queue.snooze');

    const port = await freePort();
    const cwd = project().directory;
    const app = start('npx', ['next', 'start', '-H', '127.0.0.1', '-p', String(port)], { cwd, env });
    onTestFinished(app.stop);
    const call = async (path: string, init: RequestInit = {}): Promise<Record<string, unknown>> => {
      const response = await fetch(`http://127.0.0.1:${port}/api/${path}`, init);
      return Object.assign({ status: response.status }, await response.json());
    };
    await until(
      () => {
        if (app.hasEnded()) throw new Error(`next start has ended:\n${app.output()}`);
        return call('orders?id=1').catch(() => undefined);
      },
      { timeoutMs: 60_000, intervalMs: 100 },
    );

    const order = (email: string) => call('orders', { method: 'POST', body: JSON.stringify({ email }) });
    const { id, status, duplicate } = await order('ada@example.com');
    expect({ status, duplicate }).toEqual({ status: 200, duplicate: false });
    expect(await call(`orders?id=${id}`)).toEqual({ status: 200, state: 'due', output: null });
    // The class that the route imports is the one that the library throws.
    expect(await order('nul\0')).toMatchObject({ status: 422, error: expect.stringContaining('NUL') });

    expect(await call('work', { method: 'POST' })).toMatchObject({ status: 200, completed: 1 });
    expect(await call(`orders?id=${id}`)).toEqual({
      status: 200,
      state: 'completed',
      output: { sentTo: 'ada@example.com' },
    });
  });
});

/** All that Next.js has written to run on the server. */
async function serverCode(folder: string): Promise<string> {
  const paths = await readdir(folder, { recursive: true });
  const scripts = paths.filter((path) => path.endsWith('.js'));
  return (await Promise.all(scripts.map((path) => readFile(join(folder, path), 'utf8')))).join('\n');
}
